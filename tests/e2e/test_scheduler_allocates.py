"""Under --allocator=scheduler the same pods run, allocated by kube-scheduler alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from hack.cluster import api
from tests.e2e import playground

NODE = "e2e-s"
RESOURCE = "deviceclass.resource.kubernetes.io/gpu.ration.dev"
"""Every DeviceClass has such a resource, whatever its extendedResourceName."""
Raw = dict[str, Any]


@pytest.fixture(scope="module")
def scheduler_node(cluster: api.Cluster) -> Iterator[str]:
    try:
        playground.add_node(cluster, NODE, allocator="scheduler")
        yield NODE
    finally:
        if NODE in cluster.nodes():
            cluster.remove_node(NODE)


@pytest.mark.smoke
def test_pods_run_with_gpus_that_kube_scheduler_chose(
    field: playground.Playground, scheduler_node: str
) -> None:
    on = playground.on(scheduler_node)
    field.create(playground.a_template("gpu"), playground.a_template("eight", 8))
    for name in ("one", "two"):
        field.create(playground.a_pod(name, template="gpu", nodeSelector=on))
    for name in ("one", "two"):
        field.running(name)
    assert field.uuids("one") != field.uuids("two")
    for claim in field.claims():
        managers = {
            managed_field["manager"] for managed_field in claim["metadata"]["managedFields"]
        }
        assert not any(manager.startswith("ration-controller") for manager in managers)
    for name in ("one", "two"):
        field.delete_pod(name)
    field.create(playground.a_pod("big", template="eight", nodeSelector=on))
    field.running("big")
    assert len(set(field.uuids("big"))) == 8


def of_extended_resource(name: str, node: str) -> Raw:
    """A pod that requests a GPU as an extended resource."""
    pod = playground.a_pod(name, nodeSelector=playground.on(node))
    resources = pod["spec"]["containers"][0]["resources"]
    resources["limits"] = {RESOURCE: "1"}
    resources["requests"][RESOURCE] = "1"
    return pod


def test_a_pod_of_an_extended_resource_has_a_claim_that_is_left_alone(
    field: playground.Playground, scheduler_node: str
) -> None:
    field.create(of_extended_resource("plain", scheduler_node))
    field.running("plain")
    assert len(field.uuids("plain")) == 1
    (claim,) = field.claims()
    assert claim["metadata"]["annotations"][names.EXTENDED_RESOURCE_CLAIM] == "true"
    managers = {entry["manager"] for entry in claim["metadata"]["managedFields"]}
    assert not any(manager.startswith("ration-controller") for manager in managers)
    field.create(
        playground.a_claim("seven", 7), playground.a_claim("eighth"),
        playground.a_pod("rest", claims=("seven",), nodeSelector=playground.on(scheduler_node)),
        playground.a_pod("none", claims=("eighth",), nodeSelector=playground.on(scheduler_node)),
    )  # fmt: skip
    field.running("rest")
    assert field.device_of("eighth") is None


def test_a_pod_of_an_extended_resource_on_the_controllers_nodes_says_why_it_waits(
    field: playground.Playground, nodes: tuple[str, ...]
) -> None:
    field.create(of_extended_resource("plain", nodes[0]))
    (note,) = field.told("plain", "NotConverted", 60)
    assert f"requests {RESOURCE}=1" in note
    assert "DeviceClass gpu.ration.dev" in note

    def condition() -> Raw | None:
        entries = field.pod("plain")["status"].get("conditions", ())
        return next(
            (entry for entry in entries if entry["type"] == names.CONDITION_ALLOCATED), None
        )

    shown = playground.until(condition, 20, "the condition of the pod")
    assert shown is not None
    assert (shown["status"], shown["reason"]) == ("False", "NotConverted")
    field.create(playground.a_claim("mine"), playground.a_pod("pod", claims=("mine",)))
    field.running("pod")
