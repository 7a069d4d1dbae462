from dataclasses import replace
from typing import Any

from driver.cli.simulation import dump, manifests, workloads
from tests.support.builders import objects

DRA = "resource.k8s.io/v1"


def a_template(name: str = "one-gpu", count: int = 1) -> objects.Raw:
    asked = {"spec": {"devices": {"requests": [objects.a_request(count=count)]}}}
    return {
        "kind": "ResourceClaimTemplate",
        "apiVersion": DRA,
        "metadata": {"name": name, "namespace": "default"},
        "spec": asked,
    }


def a_pod(name: str = "pod", template: str = "one-gpu", **spec: Any) -> objects.Raw:
    entry = {"name": "gpu", "resourceClaimTemplateName": template}
    containers = [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"resourceClaims": [entry], "containers": containers, **spec},
    }


def make(there: list[Any], *created: Any) -> workloads.WorkloadSet:
    wanted = manifests.read(created)
    assert not wanted.problems
    return workloads.build_workloads(wanted, dump.read(there))


def raw(kind: str, obj: objects.Raw, version: str = DRA) -> objects.Raw:
    return {"kind": kind, "apiVersion": version, **obj}


def test_a_pod_has_a_claim_of_its_template_as_kubernetes_would_make_it() -> None:
    (task,) = make([], a_template(count=3), a_pod()).tasks
    (claim,) = task.claims
    assert (claim.key, claim.pod_claim) == ("default/pod-gpu", "gpu")
    assert claim.spec.requests[0].count == 3
    assert [(one.name, one.claim) for one in task.pod.claims] == [("gpu", "pod-gpu")]
    assert task.pod.containers[0].claims == (("gpu", ""),)


def test_a_template_of_the_files_goes_before_one_of_the_cluster() -> None:
    (of_cluster,) = make([a_template(count=2)], a_pod()).tasks
    (of_files,) = make([a_template(count=2)], a_template(count=4), a_pod()).tasks
    counts = [one.claims[0].spec.requests[0].count for one in (of_cluster, of_files)]
    assert counts == [2, 4]


def test_a_pod_without_its_template_is_told_so() -> None:
    made = make([], a_pod(template="none"))
    assert made.missing == {
        "default/pod": "waits for its claim: no ResourceClaimTemplate default/none"
    }
    assert made.tasks[0].claims == ()


def test_pods_and_claims_of_names_that_are_taken_have_others() -> None:
    there = [
        raw("Pod", objects.a_pod(), "v1"),
        raw("ResourceClaim", objects.a_claim("other-gpu")),
    ]
    made = make(there, a_template(), a_pod(), a_pod("other"))
    assert [one.pod.name for one in made.tasks] == ["pod-2", "other"]
    assert [one.claims[0].name for one in made.tasks] == ["pod-2-gpu", "other-gpu-2"]
    assert made.notes == ("1 pod's name is taken: created under another",)


def test_a_claim_of_the_cluster_stays_as_it_is_and_other_objects_are_replaced() -> None:
    held = objects.a_claim(status=objects.allocated("node-a", "gpu-0"))
    there = [raw("ResourceClaim", held), raw("DeviceClass", objects.a_class())]
    created = [
        raw("ResourceClaim", objects.a_claim()),
        raw("DeviceClass", objects.a_class(expression="false")),
    ]
    made = make(there, *created)
    assert made.caches.claims["default/claim"].allocation is not None  # type: ignore[index]
    assert made.caches.classes["gpu.ration.dev"].selectors == ("false",)  # type: ignore[index]
    assert made.notes == (
        "DeviceClass gpu.ration.dev: is there already; what is created counts",
        "ResourceClaim default/claim: is there already, and counts",
    )


def test_nodes_and_slices_of_the_files_are_added() -> None:
    made = make(
        [], raw("Node", objects.a_node("new"), "v1"), raw("ResourceSlice", objects.a_slice())
    )
    assert ([*made.caches.nodes], len(made.caches.slices)) == (["new"], 1)


def test_priorities_are_looked_up() -> None:
    high = raw("PriorityClass", {"metadata": {"name": "high"}, "value": 7}, "scheduling.k8s.io/v1")
    usual = {**high, "metadata": {"name": "usual"}, "value": 3, "globalDefault": True}
    pods = [
        a_pod("a", priorityClassName="high"),
        a_pod("b", priorityClassName="system-node-critical"),
        a_pod("c"),
        a_pod("d", priority=9),
        a_pod("e", priorityClassName="none"),
    ]
    made = make([high], usual, a_template(), *pods)
    assert [one.pod.priority for one in made.tasks] == [7, 2_000_001_000, 3, 9, 0]
    assert made.notes == ("PriorityClass none: is not there, taken for 0",)


def test_resources_of_device_plugins_are_noted_where_no_claim_is_asked() -> None:
    asked = {"limits": {"nvidia.com/gpu": "1"}}
    plain = a_pod(resourceClaims=[], containers=[{"name": "main", "resources": asked}])
    made = make([], plain)
    assert made.notes == ("1 pod asks nvidia.com/gpu without a claim: left out, but for --convert",)


def test_pods_of_one_template_share_what_they_ask() -> None:
    one, two = make([], a_template(), a_pod("one"), a_pod("two")).tasks
    assert one.claims[0].spec is two.claims[0].spec
    assert replace(one.pod, name="two") != two.pod
