"""Tests that a result borrowed from an equivalent node equals the node's own."""

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.allocator.results import node_result, result_cache
from driver.scheduling.snapshot import snapshot
from tests.properties import drawing
from tests.support import snapshots
from tests.support.builders import objects

TWINS = ("node-a", "node-c", "node-d", "node-e")


@st.composite
def families(draw: st.DrawFn) -> list[drawing.Raw]:
    """Nodes that publish the same, but for names, and one that may publish anything."""
    text = json.dumps(draw(drawing.slices_of(TWINS[0])))
    results = [load for name in TWINS for load in json.loads(text.replace(TWINS[0], name))]
    return [*results, *draw(drawing.slices_of("node-b")), *draw(drawing.fabrics())]


def answer_of(
    view: snapshot.Snapshot,
    name: str,
    asking: allocator_types.Workload,
    signature_results: result_cache.SignatureResults | None,
) -> object:
    """All that counts for which node is best, and why it is not."""
    wants = allocator_requests.parse_requests(view, asking.open_claims)
    assert not isinstance(wants, allocator_types.Unschedulable)
    if node_signature.depends_on_uuids(view, asking.open_claims, wants):
        signature_results = None
    rules = snapshots.DECIDING.rules.for_workload(view, asking)
    node = next(node for node in view.nodes.values() if node.name == name)
    question = node_result.NodeQuery(
        view, node_capacity.NodeCapacityCache(), asking, wants, snapshots.DECIDING, rules
    )
    evaluated = node_result.evaluate(
        question, node, signature_results.get if signature_results else None
    )
    if not isinstance(evaluated, node_result.Fit):
        return evaluated
    candidate = evaluated.candidate
    return (
        evaluated.rank_key,
        candidate.usages,
        candidate.before.gpus,
        candidate.after.gpus,
        evaluated.steps,
    )


@settings(max_examples=150)
@given(
    families(),
    st.tuples(*map(drawing.workloads, range(4))),
    drawing.workloads(9),
    st.sampled_from([1, 2, 4096]),
)
def test_a_borrowed_result_equals_the_nodes_own(
    published: list[drawing.Raw],
    earlier: Sequence[allocator_types.Workload],
    asking: allocator_types.Workload,
    most: int,
) -> None:
    view = snapshots.view(*published)
    for workload in earlier:
        answer = dra_allocator.allocate(view, workload, snapshots.DECIDING)
        if isinstance(answer, allocator_types.Placement):
            drawing.put(view, drawing.written(view, workload, answer))
    signature_results = result_cache.SignatureResults(most=most)
    for name in view.nodes:
        assert answer_of(view, name, asking, signature_results) == answer_of(
            view, name, asking, None
        )


def test_one_of_equivalent_nodes_and_the_best_node_are_evaluated() -> None:
    devices = [objects.a_device(f"gpu-{index}") for index in range(2)]
    view = snapshots.view(*(objects.a_slice(name, devices) for name in TWINS))
    claim = objects.claim("asking", objects.a_request(count=2))
    asking = allocator_types.Workload(objects.pod("asking", claim.name), (claim,))
    answer = dra_allocator.allocate(view, asking, snapshots.DECIDING)
    assert isinstance(answer, allocator_types.Placement)
    assert [pick.device.pool for pick in answer.assignments] == [TWINS[0], TWINS[0]]
