"""A pod gets the GPU it asked for, and sees exactly that."""

import json

import pytest

from driver.kube import gvr
from tests.e2e import nvidia_nodes, playground

pytestmark = pytest.mark.smoke


def test_two_pods_on_one_node_see_different_gpus(
    field: playground.Playground, nodes: tuple[str, ...]
) -> None:
    field.create(playground.a_template("one-gpu"))
    for name in ("first", "second"):
        on = playground.on(nodes[0])
        field.create(playground.a_pod(name, template="one-gpu", nodeSelector=on))
    pods = [field.running(name) for name in ("first", "second")]
    assert [pod["spec"]["nodeName"] for pod in pods] == [nodes[0]] * 2
    first, second = field.uuids("first"), field.uuids("second")
    assert len(first) == len(second) == 1
    assert first != second


def test_the_container_sees_the_gpu_that_the_slice_publishes(
    field: playground.Playground,
) -> None:
    field.create(playground.a_claim("mine"), playground.a_pod("pod", claims=("mine",)))
    field.running("pod")
    pool, device = field.device_of("mine") or ("", "")
    slices = field.cluster.kubectl(
        "get", "resourceslices", "-o", f"jsonpath={{.items[?(@.spec.nodeName=='{pool}')].spec}}"
    )
    assert device in slices
    assert field.uuids("pod")[0] in slices


def test_a_claim_for_eight_sees_eight(field: playground.Playground) -> None:
    field.create(playground.a_claim("all", 8), playground.a_pod("big", claims=("all",)))
    field.running("big")
    assert len(set(field.uuids("big"))) == 8


def test_a_claim_for_nine_stays_pending_and_pod_and_claim_say_why_per_node(
    field: playground.Playground, nodes: tuple[str, ...]
) -> None:
    field.create(playground.a_claim("nine", 9), playground.a_pod("huge", claims=("nine",)))
    for name in ("huge", "nine"):
        (note,) = field.told(name, "NoFit")
        assert f"{', '.join(nodes)}: 8 of 9 devices fit, 1 lacking" in note
    assert field.pod("huge")["status"]["phase"] == "Pending"


def test_allocated_is_told_on_pod_and_claim_with_the_reason(field: playground.Playground) -> None:
    field.create(playground.a_claim("mine"), playground.a_pod("pod", claims=("mine",)))
    for name in ("pod", "mine"):
        (note,) = field.told(name, "Allocated")
        assert note.startswith("Allocated: Allocated gpu-0000-")
        assert "fullest node that still fits" in note


def test_a_gpu_is_free_again_when_its_pod_is_gone(
    field: playground.Playground, nodes: tuple[str, ...]
) -> None:
    field.create(playground.a_claim("all", 8), playground.a_template("eight", 8))
    on = playground.on(nodes[1])
    field.create(playground.a_pod("before", template="eight", nodeSelector=on))
    field.running("before")
    field.delete_pod("before")
    field.create(playground.a_pod("after", template="eight", nodeSelector=on))
    field.running("after")
    node = field.cluster.node_dir(nodes[1])
    assert len(list((node / "cdi").glob("*.json"))) == 1
    assert len(list((node / "state" / "claims").glob("*.json"))) == 1


def test_a_claim_shared_by_two_pods_gives_both_the_same_gpu(field: playground.Playground) -> None:
    field.create(playground.a_claim("shared"))
    for name in ("one", "two"):
        field.create(playground.a_pod(name, claims=("shared",)))
    for name in ("one", "two"):
        field.running(name)
    assert field.uuids("one") == field.uuids("two")


def test_admin_access_is_given_beside_the_user_of_a_gpu_and_takes_nothing(
    field: playground.Playground, nodes: tuple[str, ...]
) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    field.kube.patch(gvr.NAMESPACES, field.namespace, {"metadata": {"labels": labels}})
    on = playground.on(nodes[0])
    field.create(
        playground.a_claim("all", 8),
        playground.a_claim("look", 8, adminAccess=True),
        playground.a_template("eight", 8),
        playground.a_pod("user", claims=("all",), nodeSelector=on),
    )
    field.running("user")
    field.create(playground.a_pod("admin", claims=("look",), nodeSelector=on))
    field.running("admin")
    assert set(field.uuids("admin")) == set(field.uuids("user"))
    assert field.says("all", "Ready", "True")[1] == "Prepared"
    explained = json.dumps(nvidia_nodes.ration(field, "explain", "node", nodes[0]))
    assert explained.count('"admin": true') == 8
    field.delete_pod("user")
    field.create(playground.a_pod("next", template="eight", nodeSelector=on))
    field.running("next")
    assert set(field.uuids("next")) == set(field.uuids("admin"))
    field.delete_pod("admin")
    assert field.pod("next")["status"]["phase"] == "Running"
