from dataclasses import replace

from driver import ids
from driver.controller import picture
from driver.controller.allocation import allocate, answers, asked, outcome, peers, ranking, rooms
from tests import allocating, objects, worlds

NAMES = [ids.NodeName(f"node-{one}") for one in "abcd"]


def fleet() -> picture.Picture:
    """Nodes that are alike two by two: of one GPU in use, and of none."""
    found = [objects.a_slice(name, 4) for name in NAMES]
    held = [worlds.holding(f"x-{name}", name, "gpu-1") for name in NAMES[2:]]
    return worlds.view(*found, taken=held)


def question(view: picture.Picture, policies: str = "pack") -> answers.Question:
    claim = objects.claim("c", objects.a_request("gpu", 2))
    workload = allocating.workload(claim)
    wants = asked.wants(view, workload.open)
    assert not isinstance(wants, outcome.NoFit)
    assert not peers.tells_uuids(view, workload.open, wants)
    deciding = replace(worlds.DECIDING, ranking=ranking.of(policies))
    known = rooms.Rooms()
    known.renew(view)
    verdicts = deciding.rules.of(view, workload)
    return answers.Question(view, known, workload, wants, deciding, verdicts)


def fit(view: picture.Picture, told: answers.Told | None, name: ids.NodeName) -> answers.Fit:
    found = answers.ask(question(view), view.nodes[name], told)
    assert isinstance(found, answers.Fit)
    return found


def test_of_nodes_that_are_alike_one_answers_for_all_and_each_gives_its_own_devices() -> None:
    view, told = fleet(), answers.Told()
    for name in NAMES:
        alone, together = fit(view, None, name), fit(view, told, name)
        assert together.standing == alone.standing
        assert together.candidate.after == alone.candidate.after
        given = answers.picks(question(view), view.nodes[name], together)
        assert given == answers.picks(question(view), view.nodes[name], alone)
        assert {pick.device.pool for pick in given} == {name}
    assert fit(view, told, NAMES[0]) is fit(view, told, NAMES[1])


def test_what_devices_allow_is_kept_for_other_policies() -> None:
    view, chances = fleet(), answers.Chances()
    packed, spread = answers.Told("shape", chances), answers.Told("shape", chances)
    for policies, told in (("pack", packed), ("spread", spread)):
        for name in NAMES:
            asking = question(view, policies)
            kept = answers.ask(asking, view.nodes[name], told)
            assert isinstance(kept, answers.Fit)
            alone = answers.ask(asking, view.nodes[name])
            assert isinstance(alone, answers.Fit)
            assert kept.standing == alone.standing


def test_chances_that_were_not_used_for_long_are_found_again() -> None:
    view, chances = fleet(), answers.Chances(most=4)
    asking = question(view)
    first = chances.of("a", asking, view.nodes[NAMES[0]])
    assert chances.of("a", asking, view.nodes[NAMES[0]]) is first
    chances.of("b", asking, view.nodes[NAMES[2]])
    again = chances.of("a", asking, view.nodes[NAMES[0]])
    assert again is not first


def test_a_node_whose_devices_changed_since_answers_as_it_is_now() -> None:
    view = fleet()
    allocator = allocate.Allocator(worlds.DECIDING)
    for number in range(6):
        claim = objects.claim(f"c-{number}", objects.a_request("gpu", 2))
        workload = allocating.workload(claim)
        found = allocator.decide(view, workload)
        alone = allocate.allocate(view, workload, worlds.DECIDING)
        assert allocating.devices(found) == allocating.devices(alone)
        placed = allocating.placed(found)
        taken = worlds.holding(claim.name, placed.node, *allocating.devices(found))
        view.put_claim(taken.key, taken)
