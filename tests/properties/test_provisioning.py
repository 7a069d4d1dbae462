"""Tests of which nodes are asked for, whatever waits."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import fill_simulation, node_template, planner
from tests.support import snapshots
from tests.support.builders import gangs, shapes

KINDS = (shapes.EIGHT, shapes.FOUR, shapes.ONE)
MOST = 6


@st.composite
def waiting(draw: st.DrawFn, most: int = 5) -> list[provisioning_demand.NodeDemand]:
    """Pods and gangs of a few members, in the order of their turn."""
    found: list[provisioning_demand.NodeDemand] = []
    for at in range(draw(st.integers(0, most))):
        gpus = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 9]))
        if draw(st.booleans()):
            found.append(shapes.alone(f"pod-{at}", gpus))
        else:
            sizes = draw(st.lists(st.sampled_from([1, 2, 4, gpus]), min_size=2, max_size=3))
            members = [gangs.member(f"gang-{at}-{i}", size) for i, size in enumerate(sizes)]
            found.append(shapes.gang(f"gang-{at}", *members))
    return found


def filled(
    found: list[provisioning_demand.NodeDemand],
    nodes: dict[ids.NodeName, node_template.NodeTemplate],
) -> fill_simulation.FillResult:
    state = fill_simulation.FillSimulation(
        shapes.empty(), nodes, snapshots.DECIDING, provisioning_demand.Unlimited()
    )
    return state.place_all(found)


def asked(made: planner.Plan) -> dict[ids.NodeName, node_template.NodeTemplate]:
    return {ids.NodeName(one.name): one.template for one in made.requests}


@settings(max_examples=25)
@given(found=waiting(), most=st.integers(1, MOST))
def test_every_wish_has_all_its_places_or_none_and_is_told_why(
    found: list[provisioning_demand.NodeDemand], most: int
) -> None:
    made = shapes.plan(*found, shapes=KINDS, most=most)
    assert len(made.requests) <= most
    for one in found:
        told = [one.key in kind for kind in (made.placements, made.impossible, made.deferred)]
        assert told.count(True) == 1
        if one.key in made.placements:
            assert len(made.placements[one.key]) == len(one.workloads)


@settings(max_examples=25)
@given(found=waiting(), most=st.integers(1, MOST))
def test_what_was_asked_for_is_not_asked_for_again(
    found: list[provisioning_demand.NodeDemand], most: int
) -> None:
    first = shapes.plan(*found, shapes=KINDS, most=most)
    placed = [one for one in found if one.key in first.placements]
    again = shapes.plan(*placed, shapes=KINDS, most=most, in_flight=asked(first))
    assert again.requests == ()
    assert again.unneeded == ()


@settings(max_examples=25)
@given(found=waiting())
def test_no_node_that_is_asked_for_could_be_left_out(
    found: list[provisioning_demand.NodeDemand],
) -> None:
    made = shapes.plan(*found, shapes=KINDS)
    placed = [one for one in found if one.key in made.placements]
    nodes = asked(made)
    for name in nodes:
        rest = {other: one for other, one in nodes.items() if other != name}
        assert len(filled(placed, rest).placements) < len(placed)


@settings(max_examples=25)
@given(found=waiting())
def test_what_has_no_hope_has_no_place_on_any_number_of_nodes(
    found: list[provisioning_demand.NodeDemand],
) -> None:
    made = shapes.plan(*found, shapes=KINDS)
    plenty = {ids.NodeName(f"{one.name}-{at}"): one for one in KINDS for at in range(4)}
    for one in found:
        if one.key in made.impossible:
            assert one.key not in filled([one], plenty).placements


@settings(max_examples=25)
@given(found=waiting(most=4))
def test_what_comes_first_is_placed_as_if_nothing_came_after_it(
    found: list[provisioning_demand.NodeDemand],
) -> None:
    """Queue order is kept: what is later takes no node from what is earlier."""
    made = shapes.plan(*found, shapes=KINDS, most=2)
    for count in range(len(found)):
        alone = shapes.plan(*found[: count + 1], shapes=KINDS, most=2)
        if found[count].key in alone.placements and all(
            one.key in alone.placements for one in found[:count]
        ):
            assert found[count].key in made.placements


def cheapest(found: list[provisioning_demand.NodeDemand], most: int) -> float:
    """The least cost of all sets of nodes that place all."""
    sets = (
        kinds
        for count in range(most + 1)
        for kinds in itertools.combinations_with_replacement(KINDS, count)
    )
    for kinds in sorted(sets, key=lambda one: sum(kind.cost for kind in one)):
        nodes = {ids.NodeName(f"n{at}"): kind for at, kind in enumerate(kinds)}
        if len(filled(found, nodes).placements) == len(found):
            return sum(kind.cost for kind in kinds)
    raise AssertionError("nothing does")


@pytest.mark.parametrize("gpus", [(1,) * 3, (1,) * 7, (4, 4, 4), (3, 3, 3), (8, 4, 1), (2, 2, 8)])
def test_pods_by_themselves_bring_the_cheapest_nodes_there_are(gpus: tuple[int, ...]) -> None:
    found = [shapes.alone(f"pod-{at}", count) for at, count in enumerate(gpus)]
    made = shapes.plan(*found, shapes=KINDS)
    assert sum(one.template.cost for one in made.requests) == pytest.approx(cheapest(found, 4))
