"""A node that is about to be taken away: what is to go elsewhere goes, and nobody comes."""

import pytest

from driver import names
from tests.fakes import deciding
from tests.support.builders.scheduler_objects import a_gang_member, a_pod
from tests.support.scenarios.scheduled_pods import has, held, runs, told

DEFAULTS = sorted(deciding.on_demand_of().interruption_taints)


def a_world(*gpus_by_node: int) -> deciding.World:
    return deciding.World(*gpus_by_node, demanded=deciding.on_demand_of())


def is_tainted(world: deciding.World, node: str, key: str, effect: str = "NoSchedule") -> None:
    world.put_node(node, taints=[{"key": key, "effect": effect}])
    world.settle()
    world.settle()


@pytest.mark.parametrize("key", DEFAULTS)
def test_a_gang_leaves_a_node_that_is_about_to_be_taken_away_whole(key: str) -> None:
    world = a_world(1, 1, 2)
    world.add(*a_gang_member("m0"), *a_gang_member("m1"))
    runs(world, "m0", "m1")
    node = str(world.node_of("m0-gpu"))
    is_tainted(world, node, key)
    assert sorted(world.server.evicted) == ["m0", "m1"]
    (one,) = held(world)
    assert node not in {entry["node"] for entry in one["status"]["devices"]}
    (words, *_) = told(world, "NodeInterrupted")
    assert f"{node} is about to be taken away (taint {key})" in words
    assert "Evicted with all of gang default/train" in words
    assert world.registry.get_sample_value(
        "dra_gpu_controller_evictions_total", {"reason": "NodeInterrupted"}
    ) == len(world.server.evicted)


def test_a_pod_by_itself_leaves_only_where_it_asks() -> None:
    world = a_world(2)
    world.add(*a_pod("stays"), *a_pod("goes", annotations={names.ON_FAULT: "replace"}))
    runs(world, "stays", "goes")
    is_tainted(world, "node-0", "karpenter.sh/disrupted")
    assert world.server.evicted == ["goes"]


def test_a_bare_pod_of_a_gang_is_told_why_it_stays() -> None:
    world = a_world(4)
    bare = a_gang_member("m1")
    del bare[1]["metadata"]["ownerReferences"]
    world.add(*a_gang_member("m0"), *bare)
    runs(world, "m0", "m1")
    is_tainted(world, "node-0", "karpenter.sh/disrupted")
    assert world.server.evicted == []
    assert "nobody would make pod default/m1 again elsewhere" in told(world, "NodeInterrupted")[0]


def test_no_pod_is_placed_on_an_interrupted_node_until_it_stays() -> None:
    world = a_world(2)
    is_tainted(world, "node-0", "karpenter.sh/disrupted")
    claim, pod = a_pod("one")
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]
    world.add(claim, pod)
    world.settle()
    assert not has(world, "one")
    (words,) = told(world, "NoFit")
    assert "taint karpenter.sh/disrupted" in words
    world.put_node("node-0")
    world.settle()
    assert has(world, "one")


@pytest.mark.parametrize(
    ("key", "effect"),
    [("team", "NoSchedule"), ("karpenter.sh/disrupted", "PreferNoSchedule")],
)
def test_another_taint_moves_nobody(key: str, effect: str) -> None:
    world = a_world(4)
    world.add(*a_gang_member("m0"), *a_gang_member("m1"))
    runs(world, "m0", "m1")
    is_tainted(world, "node-0", key, effect)
    assert world.server.evicted == []


def test_without_nodes_on_demand_no_taint_is_looked_for() -> None:
    world = deciding.World(4)
    world.add(*a_gang_member("m0"), *a_gang_member("m1"))
    runs(world, "m0", "m1")
    is_tainted(world, "node-0", "karpenter.sh/disrupted")
    assert world.server.evicted == []
