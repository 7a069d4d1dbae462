from typing import Any

from driver import ids
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import node_usage, snapshot
from tests.support.builders import objects

A, B = ids.NodeName("node-a"), ids.NodeName("node-b")
CLAIM = ids.Key("default/claim")


def a_pod(name: str = "pod", cpu: str = "1", **spec: Any) -> pods.Pod:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return objects.pod(name, containers=containers, **spec)


def pinning(node: str, *pod_names: str) -> claims.Claim:
    reserved = [
        {"resource": "pods", "name": pod_name, "uid": objects.uid_of(pod_name)}
        for pod_name in pod_names
    ]
    return objects.claim(status=objects.allocated(node, "gpu-0", reserved=reserved))


def cpu(usage_index: node_usage.NodeUsageIndex, node: ids.NodeName) -> int:
    return usage_index.usage.get(node, snapshot.NodeUsage()).requests.get("cpu", 0)


def put(usage_index: node_usage.NodeUsageIndex, *results: pods.Pod) -> list[ids.NodeName]:
    return [name for result in results for name in usage_index.set_pod(result.key, result)]


def test_bound_pods_are_summed_by_node() -> None:
    usage_index = node_usage.NodeUsageIndex()
    ports = [{"name": "main", "ports": [{"hostPort": 80}]}]
    three = [a_pod("p", "500m", nodeName=A), a_pod("q", "2", nodeName=A)]
    assert put(usage_index, *three, objects.pod("r", nodeName=A, containers=ports)) == [A, A, A]
    use = usage_index.usage[A]
    assert (use.pod_count, use.requests) == (3, {"cpu": 2500})
    assert use.ports == {pods.HostPort("TCP", "", 80)}


def test_a_pod_without_a_node_takes_nothing() -> None:
    usage_index = node_usage.NodeUsageIndex()
    assert put(usage_index, a_pod()) == []
    assert dict(usage_index.usage) == {}


def test_a_pod_that_ends_or_goes_takes_nothing_more() -> None:
    for last in (a_pod(nodeName=A, status={"phase": "Succeeded"}), None):
        usage_index = node_usage.NodeUsageIndex()
        put(usage_index, a_pod(nodeName=A))
        assert [*usage_index.set_pod(a_pod().key, last)] == [A]
        assert dict(usage_index.usage) == {}


def test_a_pod_with_one_claim_under_two_names_comes_and_goes() -> None:
    usage_index = node_usage.NodeUsageIndex()
    pod = objects.pod("pod", "claim", "claim")
    put(usage_index, pod)
    assert usage_index.set_claim(CLAIM, pinning("node-a", "pod")) == [A]
    assert [*usage_index.set_pod(pod.key, None)] == [A]
    assert dict(usage_index.usage) == {}


def test_a_pod_that_changes_in_nothing_that_counts_touches_no_node() -> None:
    usage_index = node_usage.NodeUsageIndex()
    put(usage_index, a_pod(nodeName=A))
    assert put(usage_index, a_pod(nodeName=A)) == []
    assert put(usage_index, a_pod(nodeName=A, status={"phase": "Running"})) == []
    assert put(usage_index, a_pod("other", nodeName=A)) == [A]


def test_an_allocation_pins_the_pods_that_it_is_reserved_for() -> None:
    usage_index = node_usage.NodeUsageIndex()
    put(usage_index, a_pod("pod"), a_pod("other", "2"))
    assert [*usage_index.set_claim(CLAIM, pinning(A, "pod"))] == [A]
    assert cpu(usage_index, A) == 1000
    assert [*usage_index.set_claim(CLAIM, pinning(B, "pod", "other"))] != []
    assert (cpu(usage_index, A), cpu(usage_index, B)) == (0, 3000)
    assert {*usage_index.set_claim(CLAIM, None)} == {B}
    assert dict(usage_index.usage) == {}


def test_it_matters_not_whether_the_pod_or_its_claim_comes_first() -> None:
    usage_index = node_usage.NodeUsageIndex()
    assert [*usage_index.set_claim(CLAIM, pinning(A, "pod"))] == []
    assert put(usage_index, a_pod()) == [A]
    assert cpu(usage_index, A) == 1000


def test_a_pod_that_names_the_claim_no_more_is_not_pinned_by_it() -> None:
    usage_index = node_usage.NodeUsageIndex()
    put(usage_index, a_pod())
    usage_index.set_claim(CLAIM, pinning(A, "pod"))
    assert put(usage_index, objects.pod("pod", "another")) == [A]
    assert dict(usage_index.usage) == {}


def test_the_node_that_a_pod_is_bound_to_goes_before_all() -> None:
    usage_index = node_usage.NodeUsageIndex()
    put(usage_index, a_pod(nodeName=B))
    usage_index.set_claim(CLAIM, pinning(A, "pod"))
    assert [*usage_index.begin_write(a_pod(), A)] == []
    assert (cpu(usage_index, A), cpu(usage_index, B)) == (0, 1000)


def test_a_pod_on_its_way_counts_where_it_goes_until_it_lands() -> None:
    usage_index = node_usage.NodeUsageIndex()
    put(usage_index, a_pod())
    assert [*usage_index.begin_write(a_pod(), A)] == [A]
    assert cpu(usage_index, A) == 1000
    assert [*usage_index.end_write(a_pod())] == [A]
    assert dict(usage_index.usage) == {}


def test_a_new_pod_of_the_same_name_is_not_on_its_way() -> None:
    usage_index = node_usage.NodeUsageIndex()
    put(usage_index, a_pod())
    usage_index.begin_write(a_pod(), A)
    raw = objects.a_pod()
    raw["metadata"]["uid"] = "another"
    assert put(usage_index, pods.parse(raw)) == [A]
    assert dict(usage_index.usage) == {}
