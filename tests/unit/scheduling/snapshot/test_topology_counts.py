"""Counts that follow pods are those that are made anew, and layers leave them as they were."""

from collections import Counter

from driver import ids
from driver.scheduling.snapshot import topology_counts

A, B = ids.NodeName("a"), ids.NodeName("b")


class ByNode:
    """Pods by node, and how often that was computed."""

    def __init__(self, pods: Counter[ids.NodeName] | None = None) -> None:
        self.pods = Counter(pods or {})

    def add(self, _kind: str, node: ids.NodeName, number: int) -> None:
        self.pods[node] += number

    def copy(self) -> "ByNode":
        return ByNode(self.pods)


def test_counts_follow_the_steps_and_are_made_once() -> None:
    running, by_node = topology_counts.RunningCounts(), ByNode()
    assert running.get("key", lambda: by_node) is by_node
    running.record(("web", A, 2))
    running.record(("web", A, -1))
    assert running.get("key", ByNode) is by_node
    assert by_node.pods == {A: 1}


def test_counts_are_made_anew_after_more_steps_than_are_kept() -> None:
    running, by_node = topology_counts.RunningCounts(), ByNode()
    running.get("key", lambda: by_node)
    for _ in range(2000):
        running.record(("web", A, 1))
    assert running.get("key", lambda: ByNode(Counter({A: 2000}))) is not by_node


def test_counts_are_made_anew_when_nodes_change() -> None:
    running, by_node = topology_counts.RunningCounts(), ByNode()
    running.get("key", lambda: by_node)
    running.clear()
    assert running.get("key", ByNode) is not by_node


def test_a_layer_adds_its_steps_and_takes_them_off_again() -> None:
    stacked, below = topology_counts.StackedCounts(), ByNode(Counter({A: 1}))
    first, second = ("web", A, 1), ("web", B, 1)
    assert stacked.get("key", 0, lambda: below, [first, second]).pods == {A: 2, B: 1}
    third = ("web", B, 3)
    assert stacked.get("key", 0, lambda: below, [first, third]).pods == {A: 2, B: 3}
    assert stacked.get("key", 0, lambda: below, []).pods == Counter({A: 1, B: 0})
    assert below.pods == {A: 1}


def test_a_layer_begins_again_when_the_population_below_changed() -> None:
    stacked = topology_counts.StackedCounts()
    stacked.get("key", 0, ByNode, [("web", A, 1)])
    changed = ByNode(Counter({B: 5}))
    assert stacked.get("key", 1, lambda: changed, []).pods == {B: 5}
