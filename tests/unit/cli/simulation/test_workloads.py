from dataclasses import replace
from typing import Any

from driver.cli.simulation import dump, manifests, workloads
from tests.support.builders import objects

DRA = "resource.k8s.io/v1"


def a_template(name: str = "one-gpu", count: int = 1) -> objects.Raw:
    request = {"spec": {"devices": {"requests": [objects.a_request(count=count)]}}}
    return {
        "kind": "ResourceClaimTemplate",
        "apiVersion": DRA,
        "metadata": {"name": name, "namespace": "default"},
        "spec": request,
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


def make(existing: list[Any], *created: Any) -> workloads.WorkloadSet:
    expected = manifests.read(created)
    assert not expected.problems
    return workloads.build_workloads(expected, dump.read(existing))


def raw(kind: str, obj: objects.Raw, version: str = DRA) -> objects.Raw:
    return {"kind": kind, "apiVersion": version, **obj}


def test_a_pod_has_a_claim_of_its_template_as_kubernetes_would_make_it() -> None:
    (task,) = make([], a_template(count=3), a_pod()).tasks
    (claim,) = task.claims
    assert (claim.key, claim.pod_claim) == ("default/pod-gpu", "gpu")
    assert claim.spec.requests[0].count == 3
    assert [(claim.name, claim.claim) for claim in task.pod.claims] == [("gpu", "pod-gpu")]
    assert task.pod.containers[0].claims == (("gpu", ""),)


def test_a_template_of_the_files_goes_before_one_of_the_cluster() -> None:
    (of_cluster,) = make([a_template(count=2)], a_pod()).tasks
    (of_files,) = make([a_template(count=2)], a_template(count=4), a_pod()).tasks
    counts = [task.claims[0].spec.requests[0].count for task in (of_cluster, of_files)]
    assert counts == [2, 4]


def test_a_pod_without_its_template_is_told_so() -> None:
    workload_set = make([], a_pod(template="none"))
    assert workload_set.missing == {
        "default/pod": "waits for its claim: no ResourceClaimTemplate default/none"
    }
    assert workload_set.tasks[0].claims == ()


def test_pods_and_claims_of_names_that_are_taken_have_others() -> None:
    existing = [
        raw("Pod", objects.a_pod(), "v1"),
        raw("ResourceClaim", objects.a_claim("other-gpu")),
    ]
    workload_set = make(existing, a_template(), a_pod(), a_pod("other"))
    assert [task.pod.name for task in workload_set.tasks] == ["pod-2", "other"]
    assert [task.claims[0].name for task in workload_set.tasks] == ["pod-2-gpu", "other-gpu-2"]
    assert workload_set.notes == ("1 pod's name is taken: created under another",)


def test_a_claim_of_the_cluster_stays_as_it_is_and_other_objects_are_replaced() -> None:
    held = objects.a_claim(status=objects.allocated("node-a", "gpu-0"))
    existing = [raw("ResourceClaim", held), raw("DeviceClass", objects.a_class())]
    created = [
        raw("ResourceClaim", objects.a_claim()),
        raw("DeviceClass", objects.a_class(expression="false")),
    ]
    workload_set = make(existing, *created)
    assert workload_set.caches.claims["default/claim"].allocation is not None  # type: ignore[index]
    assert workload_set.caches.classes["gpu.ration.dev"].selectors == ("false",)  # type: ignore[index]
    assert workload_set.notes == (
        "DeviceClass gpu.ration.dev: is there already; what is created counts",
        "ResourceClaim default/claim: is there already, and counts",
    )


def test_nodes_and_slices_of_the_files_are_added() -> None:
    workload_set = make(
        [], raw("Node", objects.a_node("new"), "v1"), raw("ResourceSlice", objects.a_slice())
    )
    assert ([*workload_set.caches.nodes], len(workload_set.caches.slices)) == (["new"], 1)


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
    workload_set = make([high], usual, a_template(), *pods)
    assert [task.pod.priority for task in workload_set.tasks] == [7, 2_000_001_000, 3, 9, 0]
    assert workload_set.notes == ("PriorityClass none: is not there, taken for 0",)


def test_resources_of_device_plugins_are_noted_where_no_claim_is_asked() -> None:
    request = {"limits": {"nvidia.com/gpu": "1"}}
    plain = a_pod(resourceClaims=[], containers=[{"name": "main", "resources": request}])
    workload_set = make([], plain)
    assert workload_set.notes == (
        "1 pod asks nvidia.com/gpu without a claim: left out, but for --convert",
    )


def test_pods_of_one_template_share_what_they_ask() -> None:
    task, two = make([], a_template(), a_pod("one"), a_pod("two")).tasks
    assert task.claims[0].spec is two.claims[0].spec
    assert replace(task.pod, name="two") != two.pod
