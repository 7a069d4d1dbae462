"""What a node is said to answer because another did, it answers itself."""

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.controller import view as cluster
from driver.controller.allocation import allocate, answers, asked, outcome, peers, rooms
from tests import objects, worlds
from tests.properties import drawing

TWINS = ("node-a", "node-c", "node-d", "node-e")


@st.composite
def families(draw: st.DrawFn) -> list[drawing.Raw]:
    """Nodes that publish the same, but for names, and one that may publish anything."""
    text = json.dumps(draw(drawing.slices_of(TWINS[0])))
    found = [one for name in TWINS for one in json.loads(text.replace(TWINS[0], name))]
    return [*found, *draw(drawing.slices_of("node-b")), *draw(drawing.fabrics())]


def answer_of(
    view: cluster.ClusterView, name: str, asking: outcome.Workload, told: answers.Told | None
) -> object:
    """All that counts for which node is best, and why it is not."""
    wants = asked.wants(view, asking.open)
    assert not isinstance(wants, outcome.NoFit)
    if peers.tells_uuids(view, asking.open, wants):
        told = None
    rules = worlds.DECIDING.rules.of(view, asking)
    node = next(one for one in view.nodes.values() if one.name == name)
    question = answers.Question(view, rooms.Rooms(), asking, wants, worlds.DECIDING, rules)
    found = answers.ask(question, node, told)
    if not isinstance(found, answers.Fit):
        return found
    one = found.candidate
    return found.standing, one.taken, one.before.cards, one.after.cards, found.steps


@settings(max_examples=150)
@given(families(), st.tuples(*map(drawing.workloads, range(4))), drawing.workloads(9))
def test_what_a_node_borrows_it_would_answer_itself(
    published: list[drawing.Raw], before: Sequence[outcome.Workload], asking: outcome.Workload
) -> None:
    view = worlds.view(*published)
    for workload in before:
        answer = allocate.allocate(view, workload, worlds.DECIDING)
        if isinstance(answer, outcome.Placement):
            drawing.put(view, drawing.written(view, workload, answer))
    told = answers.Told()
    for name in view.nodes:
        assert answer_of(view, name, asking, told) == answer_of(view, name, asking, None)


def test_of_nodes_that_are_alike_one_is_asked_and_the_best_itself() -> None:
    devices = [objects.a_device(f"gpu-{at}") for at in range(2)]
    view = worlds.view(*(objects.a_slice(name, devices) for name in TWINS))
    claim = objects.claim("asking", objects.a_request(count=2))
    asking = outcome.Workload(objects.pod("asking", claim.name), (claim,))
    answer = allocate.allocate(view, asking, worlds.DECIDING)
    assert isinstance(answer, outcome.Placement)
    assert [pick.device.pool for pick in answer.picks] == [TWINS[0], TWINS[0]]
