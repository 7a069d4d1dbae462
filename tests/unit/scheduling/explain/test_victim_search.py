from collections.abc import Hashable, Sequence

import pytest

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.explain import cost, holders, victim_search
from tests.support.builders import device_layouts, objects
from tests.support.scenarios import occupied_nodes

A = ids.NodeName("node-a")


def full(*names: str) -> occupied_nodes.Crowd:
    """A node whose GPUs are in use by a pod each."""
    crowd = occupied_nodes.of_sizes({"node-a": len(names)})
    for at, name in enumerate(names):
        crowd.run(name, "node-a", f"gpu-{at}")
    return crowd


def test_of_equals_the_first_by_name_goes() -> None:
    assert occupied_nodes.ways(full("q", "p"), occupied_nodes.gpus()) == [["p"], ["q"]]


def test_what_fits_needs_nobody_to_go() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2})
    crowd.run("p", "node-a", "gpu-0")
    assert occupied_nodes.ways(crowd, occupied_nodes.gpus()) == [[]]


def test_one_pod_of_two_gpus_is_cheaper_than_two_of_one() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4})
    crowd.run("p", "node-a", "gpu-0")
    crowd.run("q", "node-a", "gpu-1")
    crowd.run("wide", "node-a", "gpu-2", "gpu-3")
    assert occupied_nodes.ways(crowd, occupied_nodes.gpus(2)) == [["wide"], ["p", "q"]]


def test_of_as_many_pods_those_go_that_have_least_memory() -> None:
    small = objects.a_device("gpu-1", capacity={"memory": {"value": "40Gi"}})
    crowd = occupied_nodes.Crowd()
    crowd.node("node-a", objects.a_slice("node-a", [objects.a_device("gpu-0"), small]))
    crowd.run("p", "node-a", "gpu-0")
    crowd.run("q", "node-a", "gpu-1")
    assert occupied_nodes.ways(crowd, occupied_nodes.gpus()) == [["q"], ["p"]]


def test_a_claim_of_two_pods_wants_both_gone() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    both = [crowd.put(objects.pod(name, "one", nodeName="node-a")) for name in ("p", "q")]
    crowd.hold("one", "node-a", "gpu-0", by=both)
    assert occupied_nodes.ways(crowd, occupied_nodes.gpus()) == [["p", "q"]]


def test_who_has_no_device_goes_where_cpu_is_short() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    for name, cpu in (("big", "5"), ("small", "2")):
        asking = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
        crowd.run(name, "node-a", containers=asking)
    assert occupied_nodes.ways(crowd, occupied_nodes.asks(objects.a_request(), cpu="3")) == [
        ["big"],
        ["small"],
    ]
    assert occupied_nodes.ways(crowd, occupied_nodes.asks(objects.a_request(), cpu="6")) == [
        ["big"]
    ]
    assert occupied_nodes.ways(crowd, occupied_nodes.asks(objects.a_request(), cpu="8")) == [
        ["big", "small"]
    ]
    assert occupied_nodes.ways(crowd, occupied_nodes.asks(objects.a_request(), cpu="9")) == []


def test_nobodys_going_helps_against_a_taint() -> None:
    crowd = full("p")
    taint = {"key": "x", "effect": "NoSchedule"}
    crowd.view.set_node(A, objects.node("node-a", taints=[taint]))
    assert occupied_nodes.ways(crowd, occupied_nodes.gpus()) == []


def test_of_parts_of_a_gpu_only_those_in_the_way_go() -> None:
    """3g lies on slices 0 to 3, or on 4 to 7."""
    crowd = occupied_nodes.Crowd()
    cut = device_layouts.cut(1)
    (share,) = cut.reachable_pools(A)
    crowd.view.set_node(A, cut.nodes[A])
    for one in share.pool.slices:
        crowd.view.set_slice(one.name, one)
    for at in (0, 2, 5):
        crowd.run(f"at-{at}", "node-a", f"gpu-0-1g-{at}")
    found = occupied_nodes.ways(crowd, occupied_nodes.asks(device_layouts.of_profile("r", 1, "3g")))
    assert found == [["at-5"], ["at-0", "at-2"]]
    assert occupied_nodes.ways(
        crowd, occupied_nodes.asks(device_layouts.of_profile("r", 2, "3g"))
    ) == [["at-0", "at-2", "at-5"]]


def test_of_shares_as_many_go_as_free_the_amount() -> None:
    crowd = occupied_nodes.Crowd()
    crowd.node("node-a", objects.a_slice("node-a", [objects.a_share_device("ts")]))
    for number, amount in enumerate(("10Gi", "30Gi", "35Gi"), start=1):
        crowd.run(f"has-{amount}", "node-a", objects.a_share("ts", number, memory=amount))
    wants = objects.a_request(deviceClassName="any", capacity={"requests": {"memory": "40Gi"}})
    assert occupied_nodes.ways(crowd, occupied_nodes.asks(wants)) == [
        ["has-35Gi"],
        ["has-10Gi", "has-30Gi"],
    ]


def test_a_node_is_tried_with_its_own_tenants_and_the_cheapest_node_wins() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2, "node-b": 2})
    for number, node in enumerate(("node-a", "node-a", "node-b")):
        crowd.run(f"p{number}", node, f"gpu-{number % 2}")
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(2))
    found = victim_search.find_best(
        search, [(one, crowd.people.node_holders(one.name)) for one in _nodes(crowd)]
    )
    assert found.victims is not None
    assert (found.victims.node, found.victims.names, found.is_exhaustive) == (
        "node-b",
        ("default/p2",),
        True,
    )


def test_nodes_that_are_alike_are_tried_once() -> None:
    crowd = occupied_nodes.of_sizes({f"node-{at}": 2 for at in range(40)})
    for at in range(40):
        crowd.run(f"p{at}", f"node-{at}", "gpu-0")
    steps = {}
    for count in (1, 40):
        search = occupied_nodes.search(crowd, occupied_nodes.gpus(2))
        victim_search.find_best(
            search, [(one, crowd.people.node_holders(one.name)) for one in _nodes(crowd)[:count]]
        )
        steps[count] = search.budget.steps
    assert steps[40] - steps[1] == 39 * 10


def test_where_the_steps_end_a_set_that_does_is_told_as_such() -> None:
    crowd = full(*(f"p{at}" for at in range(8)))
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(4), most=60)
    (found,) = victim_search.victim_sets(search, crowd.view.nodes[A], crowd.people.node_holders(A))
    assert (len(found.victims), found.is_optimal) == (4, False)


def test_four_of_eight_alike_are_found_in_few_steps() -> None:
    crowd = full(*(f"p{at}" for at in range(8)))
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(4))
    found = next(
        victim_search.victim_sets(search, crowd.view.nodes[A], crowd.people.node_holders(A))
    )
    assert [one.pod.name for one in found.victims] == ["p0", "p1", "p2", "p3"]
    assert search.budget.steps < 300


class LowestPriority:
    """Cost of preemption: the highest priority that goes, then how many."""

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> cost.Cost:
        return max((one.pod.priority for one in leaving), default=-1), len(leaving)

    def signature(self, tenant: holders.DeviceHolder) -> Hashable:
        return tenant.pod.priority


def test_another_price_chooses_other_pods() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4})
    crowd.run("wide", "node-a", "gpu-0", "gpu-1", priority=10)
    crowd.run("p", "node-a", "gpu-2", priority=1)
    crowd.run("q", "node-a", "gpu-3", priority=2)
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(2), price=LowestPriority())
    found = victim_search.victim_sets(search, crowd.view.nodes[A], crowd.people.node_holders(A))
    assert [[one.pod.name for one in freed.victims] for freed in found] == [["p", "q"], ["wide"]]


@pytest.mark.parametrize("most", [1, 50])
def test_without_steps_not_all_is_seen(most: int) -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1, "node-b": 2})
    crowd.run("p", "node-a", "gpu-0")
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(2), most=most)
    found = victim_search.find_best(
        search, [(one, crowd.people.node_holders(one.name)) for one in _nodes(crowd)]
    )
    assert found.is_exhaustive is False


def _nodes(crowd: occupied_nodes.Crowd) -> list[nodes.Node]:
    return [*crowd.view.nodes.values()]
