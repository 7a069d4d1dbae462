"""Nodes that kube-scheduler refused for pods of one shape, and when they are tried again."""

from typing import Any

from driver import ids
from driver.resources.core import pods
from driver.scheduling.lifecycle import node_refusals
from tests.support.builders import objects

NODE = ids.NodeName("node-a")
WORDS = "node(s) were unschedulable"


class States:
    """States of nodes, as the picture gives them."""

    def __init__(self) -> None:
        self.local = self.everywhere = 0

    def __call__(self, _node: ids.NodeName, spans: bool) -> object:  # noqa: FBT001
        return ("all", self.everywhere) if spans else ("node", self.local)


def replica(name: str, owner: str = "web") -> pods.Pod:
    reference: dict[str, Any] = {"kind": "ReplicaSet", "name": owner, "uid": owner}
    raw = objects.a_pod(name)
    raw["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return pods.parse(raw)


def test_a_refused_node_is_left_out_for_every_pod_of_the_owner() -> None:
    memory, states = node_refusals.NodeRefusals(), States()
    memory.record(replica("a"), NODE, WORDS, states, 0.0)
    assert memory.avoided_nodes(replica("b"), states, 1.0) == {NODE: WORDS}
    assert memory.avoided_nodes(replica("c", "another"), states, 1.0) == {}


def test_it_is_tried_again_once_its_state_changed_and_a_moment_passed() -> None:
    memory, states = node_refusals.NodeRefusals(), States()
    memory.record(replica("a"), NODE, WORDS, states, 0.0)
    states.local += 1
    assert memory.avoided_nodes(replica("a"), states, node_refusals.FIRST_S - 0.1) == {NODE: WORDS}
    assert memory.avoided_nodes(replica("a"), states, node_refusals.FIRST_S) == {}


def test_an_unchanged_node_is_not_tried_again_for_a_minute() -> None:
    memory, states = node_refusals.NodeRefusals(), States()
    memory.record(replica("a"), NODE, WORDS, states, 0.0)
    assert memory.avoided_nodes(replica("a"), states, node_refusals.UNCHANGED_S - 0.1) == {
        NODE: WORDS
    }
    assert memory.avoided_nodes(replica("a"), states, node_refusals.UNCHANGED_S) == {}


def test_a_refusal_for_other_nodes_pods_passes_with_a_binding_anywhere() -> None:
    memory, states = node_refusals.NodeRefusals(), States()
    spread = "node(s) didn't match pod topology spread constraints"
    memory.record(replica("a"), NODE, spread, states, 0.0)
    states.everywhere += 1
    assert memory.avoided_nodes(replica("a"), states, node_refusals.FIRST_S) == {}


def test_each_further_refusal_doubles_the_back_off_up_to_the_longest() -> None:
    memory, states, now = node_refusals.NodeRefusals(), States(), 0.0
    lasts = []
    for _ in range(9):
        lasts.append(memory.record(replica("a"), NODE, WORDS, states, now))
        now += node_refusals.MAX_S
    assert lasts[:3] == [5.0, 10.0, 20.0]
    assert lasts[-1] == node_refusals.MAX_S


def test_the_next_end_is_the_first_moment_that_may_change_the_answer() -> None:
    memory, states = node_refusals.NodeRefusals(), States()
    assert memory.next_retry(replica("a"), 0.0) is None
    memory.record(replica("a"), NODE, WORDS, states, 0.0)
    assert memory.next_retry(replica("a"), 1.0) == node_refusals.FIRST_S
    assert memory.next_retry(replica("a"), 6.0) == node_refusals.UNCHANGED_S


def test_old_refusals_are_forgotten() -> None:
    memory, states = node_refusals.NodeRefusals(), States()
    memory.record(replica("a"), NODE, WORDS, states, 0.0)
    late = 3 * node_refusals.MAX_S
    assert (
        memory.record(replica("b", "another"), NODE, WORDS, states, late) == node_refusals.FIRST_S
    )
    assert memory.record(replica("a"), NODE, WORDS, states, late) == node_refusals.FIRST_S
