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
    reserved = [{"resource": "pods", "name": one, "uid": objects.uid_of(one)} for one in pod_names]
    return objects.claim(status=objects.allocated(node, "gpu-0", reserved=reserved))


def cpu(of: node_usage.NodeUsageIndex, node: ids.NodeName) -> int:
    return of.usage.get(node, snapshot.NodeUsage()).requests.get("cpu", 0)


def put(of: node_usage.NodeUsageIndex, *found: pods.Pod) -> list[ids.NodeName]:
    return [name for one in found for name in of.set_pod(one.key, one)]


def test_bound_pods_are_summed_by_node() -> None:
    found = node_usage.NodeUsageIndex()
    ports = [{"name": "main", "ports": [{"hostPort": 80}]}]
    three = [a_pod("p", "500m", nodeName=A), a_pod("q", "2", nodeName=A)]
    assert put(found, *three, objects.pod("r", nodeName=A, containers=ports)) == [A, A, A]
    use = found.usage[A]
    assert (use.pod_count, use.requests) == (3, {"cpu": 2500})
    assert use.ports == {pods.HostPort("TCP", "", 80)}


def test_a_pod_without_a_node_takes_nothing() -> None:
    found = node_usage.NodeUsageIndex()
    assert put(found, a_pod()) == []
    assert dict(found.usage) == {}


def test_a_pod_that_ends_or_goes_takes_nothing_more() -> None:
    for last in (a_pod(nodeName=A, status={"phase": "Succeeded"}), None):
        found = node_usage.NodeUsageIndex()
        put(found, a_pod(nodeName=A))
        assert [*found.set_pod(a_pod().key, last)] == [A]
        assert dict(found.usage) == {}


def test_a_pod_that_changes_in_nothing_that_counts_touches_no_node() -> None:
    found = node_usage.NodeUsageIndex()
    put(found, a_pod(nodeName=A))
    assert put(found, a_pod(nodeName=A)) == []
    assert put(found, a_pod(nodeName=A, status={"phase": "Running"})) == []
    assert put(found, a_pod("other", nodeName=A)) == [A]


def test_an_allocation_pins_the_pods_that_it_is_reserved_for() -> None:
    found = node_usage.NodeUsageIndex()
    put(found, a_pod("pod"), a_pod("other", "2"))
    assert [*found.set_claim(CLAIM, pinning(A, "pod"))] == [A]
    assert cpu(found, A) == 1000
    assert [*found.set_claim(CLAIM, pinning(B, "pod", "other"))] != []
    assert (cpu(found, A), cpu(found, B)) == (0, 3000)
    assert {*found.set_claim(CLAIM, None)} == {B}
    assert dict(found.usage) == {}


def test_it_matters_not_whether_the_pod_or_its_claim_comes_first() -> None:
    found = node_usage.NodeUsageIndex()
    assert [*found.set_claim(CLAIM, pinning(A, "pod"))] == []
    assert put(found, a_pod()) == [A]
    assert cpu(found, A) == 1000


def test_a_pod_that_names_the_claim_no_more_is_not_pinned_by_it() -> None:
    found = node_usage.NodeUsageIndex()
    put(found, a_pod())
    found.set_claim(CLAIM, pinning(A, "pod"))
    assert put(found, objects.pod("pod", "another")) == [A]
    assert dict(found.usage) == {}


def test_the_node_that_a_pod_is_bound_to_goes_before_all() -> None:
    found = node_usage.NodeUsageIndex()
    put(found, a_pod(nodeName=B))
    found.set_claim(CLAIM, pinning(A, "pod"))
    assert [*found.begin_write(a_pod(), A)] == []
    assert (cpu(found, A), cpu(found, B)) == (0, 1000)


def test_a_pod_on_its_way_counts_where_it_goes_until_it_lands() -> None:
    found = node_usage.NodeUsageIndex()
    put(found, a_pod())
    assert [*found.begin_write(a_pod(), A)] == [A]
    assert cpu(found, A) == 1000
    assert [*found.end_write(a_pod())] == [A]
    assert dict(found.usage) == {}


def test_a_new_pod_of_the_same_name_is_not_on_its_way() -> None:
    found = node_usage.NodeUsageIndex()
    put(found, a_pod())
    found.begin_write(a_pod(), A)
    raw = objects.a_pod()
    raw["metadata"]["uid"] = "another"
    assert put(found, pods.parse(raw)) == [A]
    assert dict(found.usage) == {}
