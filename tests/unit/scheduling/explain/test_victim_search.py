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
    for index, name in enumerate(names):
        crowd.run(name, "node-a", f"gpu-{index}")
    return crowd


def test_the_first_by_name_of_equal_victims_is_chosen() -> None:
    assert occupied_nodes.ways(full("q", "p"), occupied_nodes.gpus()) == [["p"], ["q"]]


def test_a_fitting_workload_needs_no_victim() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2})
    crowd.run("p", "node-a", "gpu-0")
    assert occupied_nodes.ways(crowd, occupied_nodes.gpus()) == [[]]


def test_a_pod_with_two_gpus_is_cheaper_than_two_pods() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4})
    crowd.run("p", "node-a", "gpu-0")
    crowd.run("q", "node-a", "gpu-1")
    crowd.run("wide", "node-a", "gpu-2", "gpu-3")
    assert occupied_nodes.ways(crowd, occupied_nodes.gpus(2)) == [["wide"], ["p", "q"]]


def test_the_victims_with_least_memory_are_chosen() -> None:
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


def test_pods_without_devices_are_victims_when_cpu_is_short() -> None:
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


def test_only_blocking_mig_devices_of_a_gpu_are_freed() -> None:
    """3g lies on slices 0 to 3, or on 4 to 7."""
    crowd = occupied_nodes.Crowd()
    cut = device_layouts.cut(1)
    (share,) = cut.reachable_pools(A)
    crowd.view.set_node(A, cut.nodes[A])
    for slice_ in share.pool.slices:
        crowd.view.set_slice(slice_.name, slice_)
    for entry in (0, 2, 5):
        crowd.run(f"at-{entry}", "node-a", f"gpu-0-1g-{entry}")
    ways = occupied_nodes.ways(crowd, occupied_nodes.asks(device_layouts.of_profile("r", 1, "3g")))
    assert ways == [["at-5"], ["at-0", "at-2"]]
    assert occupied_nodes.ways(
        crowd, occupied_nodes.asks(device_layouts.of_profile("r", 2, "3g"))
    ) == [["at-0", "at-2", "at-5"]]


def test_as_many_shares_are_freed_as_the_amount_needs() -> None:
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
    best_victims = victim_search.find_best(
        search, [(node, crowd.people.node_holders(node.name)) for node in _nodes(crowd)]
    )
    assert best_victims.victims is not None
    assert (best_victims.victims.node, best_victims.victims.names, best_victims.is_exhaustive) == (
        "node-b",
        ("default/p2",),
        True,
    )


def test_nodes_that_are_alike_are_tried_once() -> None:
    crowd = occupied_nodes.of_sizes({f"node-{index}": 2 for index in range(40)})
    for number in range(40):
        crowd.run(f"p{number}", f"node-{number}", "gpu-0")
    steps = {}
    for count in (1, 40):
        search = occupied_nodes.search(crowd, occupied_nodes.gpus(2))
        victim_search.find_best(
            search, [(node, crowd.people.node_holders(node.name)) for node in _nodes(crowd)[:count]]
        )
        steps[count] = search.budget.steps
    assert steps[40] - steps[1] == 39 * 10


def test_a_solution_found_at_the_step_limit_is_marked() -> None:
    crowd = full(*(f"p{index}" for index in range(8)))
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(4), most=60)
    (victim_set,) = victim_search.victim_sets(
        search, crowd.view.nodes[A], crowd.people.node_holders(A)
    )
    assert (len(victim_set.victims), victim_set.is_optimal) == (4, False)


def test_four_of_eight_alike_are_found_in_few_steps() -> None:
    crowd = full(*(f"p{index}" for index in range(8)))
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(4))
    victim_set = next(
        victim_search.victim_sets(search, crowd.view.nodes[A], crowd.people.node_holders(A))
    )
    assert [victim.pod.name for victim in victim_set.victims] == ["p0", "p1", "p2", "p3"]
    assert search.budget.steps < 300


class LowestPriority:
    """Cost of preemption: the highest priority that goes, then how many."""

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> cost.Cost:
        return max((device_holder.pod.priority for device_holder in leaving), default=-1), len(
            leaving
        )

    def signature(self, tenant: holders.DeviceHolder) -> Hashable:
        return tenant.pod.priority


def test_another_price_chooses_other_pods() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4})
    crowd.run("wide", "node-a", "gpu-0", "gpu-1", priority=10)
    crowd.run("p", "node-a", "gpu-2", priority=1)
    crowd.run("q", "node-a", "gpu-3", priority=2)
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(2), price=LowestPriority())
    victim_sets = victim_search.victim_sets(
        search, crowd.view.nodes[A], crowd.people.node_holders(A)
    )
    assert [[victim.pod.name for victim in freed.victims] for freed in victim_sets] == [
        ["p", "q"],
        ["wide"],
    ]


@pytest.mark.parametrize("most", [1, 50])
def test_without_steps_not_all_is_seen(most: int) -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1, "node-b": 2})
    crowd.run("p", "node-a", "gpu-0")
    search = occupied_nodes.search(crowd, occupied_nodes.gpus(2), most=most)
    best_victims = victim_search.find_best(
        search, [(node, crowd.people.node_holders(node.name)) for node in _nodes(crowd)]
    )
    assert best_victims.is_exhaustive is False


def _nodes(crowd: occupied_nodes.Crowd) -> list[nodes.Node]:
    return [*crowd.view.nodes.values()]
