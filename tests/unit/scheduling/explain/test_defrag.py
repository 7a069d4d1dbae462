from dataclasses import replace
from typing import Any

import pytest

from driver import ids
from driver.resources.core import pods
from driver.scheduling.explain import defrag
from tests.support.builders import objects
from tests.support.scenarios import occupied_nodes

OWNER = pods.Owner("ReplicaSet", "web", "u")


def opted(
    crowd: occupied_nodes.Crowd, name: str, node: str, *devices: str, **spec: Any
) -> pods.Pod:
    pod = crowd.run(name, node, *devices, **spec)
    return crowd.put(replace(pod, movable=True, owner=OWNER))


def plan(crowd: occupied_nodes.Crowd, count: int = 2) -> defrag.Plan:
    result = defrag.make_plan(crowd.world, occupied_nodes.gpus(count))
    assert isinstance(result, defrag.Plan)
    return result


def moves(result: defrag.Plan) -> dict[str, ids.NodeName | None]:
    """Return where each pod goes, by name."""
    return {move.holder.pod.name: getattr(move.result, "node", None) for move in result.moves}


def test_a_fitting_workload_moves_no_pod() -> None:
    assert plan(occupied_nodes.of_sizes({"node-a": 2})).moves == ()


def test_fewest_pods_are_moved() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 3, "node-b": 3})
    for index in range(2):
        opted(crowd, f"a{index}", "node-a", f"gpu-{index}")
    opted(crowd, "b0", "node-b", "gpu-0")
    assert moves(plan(crowd, 3)) == {"b0": "node-a"}


def test_a_plan_whose_pods_all_find_a_place_is_better_than_a_shorter_one() -> None:
    """The wide one would find none; the small ones do."""
    crowd = occupied_nodes.of_sizes({"node-a": 4, "node-b": 4, "node-c": 3})
    opted(crowd, "wide", "node-a", "gpu-0", "gpu-1", "gpu-2", "gpu-3")
    for index in range(3):
        opted(crowd, f"b{index}", "node-b", f"gpu-{index}")
    result = plan(crowd, 4)
    assert moves(result) == dict.fromkeys(("b0", "b1", "b2"), "node-c")
    assert result.pending_moves == ()


def test_without_such_a_plan_the_fewest_wait() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2})
    opted(crowd, "p", "node-a", "gpu-0")
    result = plan(crowd)
    assert moves(result) == {"p": None}
    assert [pending_move.holder.pod.name for pending_move in result.pending_moves] == ["p"]


def test_two_that_move_do_not_get_the_same_place() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2, "node-b": 1, "node-c": 1})
    for index in range(2):
        opted(crowd, f"p{index}", "node-a", f"gpu-{index}")
    assert moves(plan(crowd)) == {"p0": "node-b", "p1": "node-c"}


def test_a_pod_without_a_claim_goes_where_there_is_cpu() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1, "node-b": 0})
    asking = [{"name": "main", "resources": {"requests": {"cpu": "7"}}}]
    opted(crowd, "busy", "node-a", containers=asking)
    result = defrag.make_plan(crowd.world, occupied_nodes.asks(objects.a_request(), cpu="4"))
    assert isinstance(result, defrag.Plan)
    assert moves(result) == {"busy": "node-b"}


def test_pods_with_a_claim_in_common_move_together() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2, "node-b": 1})
    both = [
        crowd.put(replace(objects.pod(name, "one", nodeName="node-a"), movable=True, owner=OWNER))
        for name in ("p", "q")
    ]
    crowd.hold("one", "node-a", "gpu-0", by=both)
    assert moves(plan(crowd)) == {"p": "node-b", "q": "node-b"}


def test_a_pod_that_did_not_opt_in_is_not_moved() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2})
    crowd.run("stays", "node-a", "gpu-0")
    result = defrag.make_plan(crowd.world, occupied_nodes.gpus(2))
    assert result == defrag.NoPlan(result.unschedulable, 0, is_exhaustive=True)  # type: ignore[union-attr]


def test_a_search_that_ends_says_so() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2, "node-b": 1})
    opted(crowd, "p", "node-a", "gpu-0")
    early = defrag.make_plan(crowd.world, occupied_nodes.gpus(2), most=0)
    assert isinstance(early, defrag.NoPlan)
    assert (early.candidates, early.is_exhaustive) == (1, False)
    late = defrag.make_plan(crowd.world, occupied_nodes.gpus(2), most=1)
    assert isinstance(late, defrag.Plan)
    assert (moves(late), late.is_optimal) == ({"p": "node-b"}, False)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"movable": False}, "did not opt in"),
        ({"owner": None}, "nobody would make it again"),
        ({"owner": pods.Owner("Node", "n", "u")}, "its Node would make it again on"),
        ({"owner": pods.Owner("DaemonSet", "d", "u")}, "its DaemonSet would make it again on"),
        ({"node": None}, "is not bound to a node yet"),
        ({"deleting": True}, "is leaving already"),
        ({}, ""),
    ],
)
def test_pods_that_must_not_be_moved_stay(change: dict[str, Any], why: str) -> None:
    pod = replace(objects.pod(nodeName="node-a"), movable=True, owner=OWNER)
    immovable_reason = defrag.immovable_reason(replace(pod, **change))
    assert immovable_reason.startswith(why)
    assert bool(immovable_reason) is bool(why)
