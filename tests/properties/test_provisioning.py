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
    node_demands: list[provisioning_demand.NodeDemand] = []
    for index in range(draw(st.integers(0, most))):
        gpus = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 9]))
        if draw(st.booleans()):
            node_demands.append(shapes.alone(f"pod-{index}", gpus))
        else:
            sizes = draw(st.lists(st.sampled_from([1, 2, 4, gpus]), min_size=2, max_size=3))
            members = [gangs.member(f"gang-{index}-{i}", size) for i, size in enumerate(sizes)]
            node_demands.append(shapes.gang(f"gang-{index}", *members))
    return node_demands


def filled(
    node_demands: list[provisioning_demand.NodeDemand],
    nodes: dict[ids.NodeName, node_template.NodeTemplate],
) -> fill_simulation.FillResult:
    state = fill_simulation.FillSimulation(
        shapes.empty(), nodes, snapshots.DECIDING, provisioning_demand.Unlimited()
    )
    return state.place_all(node_demands)


def asked(plan: planner.Plan) -> dict[ids.NodeName, node_template.NodeTemplate]:
    return {ids.NodeName(request.name): request.template for request in plan.requests}


@settings(max_examples=25)
@given(node_demands=waiting(), most=st.integers(1, MOST))
def test_every_wish_has_all_its_places_or_none_and_is_told_why(
    node_demands: list[provisioning_demand.NodeDemand], most: int
) -> None:
    plan = shapes.plan(*node_demands, shapes=KINDS, most=most)
    assert len(plan.requests) <= most
    for node_demand in node_demands:
        reported = [
            node_demand.key in kind for kind in (plan.placements, plan.impossible, plan.deferred)
        ]
        assert reported.count(True) == 1
        if node_demand.key in plan.placements:
            assert len(plan.placements[node_demand.key]) == len(node_demand.workloads)


@settings(max_examples=25)
@given(node_demands=waiting(), most=st.integers(1, MOST))
def test_requested_nodes_are_not_requested_again(
    node_demands: list[provisioning_demand.NodeDemand], most: int
) -> None:
    first = shapes.plan(*node_demands, shapes=KINDS, most=most)
    placed = [node_demand for node_demand in node_demands if node_demand.key in first.placements]
    again = shapes.plan(*placed, shapes=KINDS, most=most, in_flight=asked(first))
    assert again.requests == ()
    assert again.unneeded == ()


@settings(max_examples=25)
@given(node_demands=waiting(), most=st.integers(1, MOST))
def test_no_node_that_is_asked_for_could_be_left_out(
    node_demands: list[provisioning_demand.NodeDemand], most: int
) -> None:
    plan = shapes.plan(*node_demands, shapes=KINDS, most=most)
    placed = [node_demand for node_demand in node_demands if node_demand.key in plan.placements]
    nodes = asked(plan)
    for name in nodes:
        rest = {other: node for other, node in nodes.items() if other != name}
        assert len(filled(placed, rest).placements) < len(placed)


@settings(max_examples=25)
@given(node_demands=waiting())
def test_an_infeasible_workload_fits_no_number_of_nodes(
    node_demands: list[provisioning_demand.NodeDemand],
) -> None:
    plan = shapes.plan(*node_demands, shapes=KINDS)
    plenty = {
        ids.NodeName(f"{template.name}-{index}"): template
        for template in KINDS
        for index in range(4)
    }
    for node_demand in node_demands:
        if node_demand.key in plan.impossible:
            assert node_demand.key not in filled([node_demand], plenty).placements


@settings(max_examples=25)
@given(node_demands=waiting(most=4))
def test_earlier_workloads_are_placed_as_if_there_were_no_later_ones(
    node_demands: list[provisioning_demand.NodeDemand],
) -> None:
    """Queue order is kept: what is later takes no node from what is earlier."""
    plan = shapes.plan(*node_demands, shapes=KINDS, most=2)
    for count in range(len(node_demands)):
        alone = shapes.plan(*node_demands[: count + 1], shapes=KINDS, most=2)
        if node_demands[count].key in alone.placements and all(
            node_demand.key in alone.placements for node_demand in node_demands[:count]
        ):
            assert node_demands[count].key in plan.placements


def cheapest(node_demands: list[provisioning_demand.NodeDemand], most: int) -> float:
    """The least cost of all sets of nodes that place all."""
    sets = (
        kinds
        for count in range(most + 1)
        for kinds in itertools.combinations_with_replacement(KINDS, count)
    )
    for kinds in sorted(sets, key=lambda node_templates: sum(kind.cost for kind in node_templates)):
        nodes = {ids.NodeName(f"n{index}"): kind for index, kind in enumerate(kinds)}
        if len(filled(node_demands, nodes).placements) == len(node_demands):
            return sum(kind.cost for kind in kinds)
    raise AssertionError("nothing does")


@pytest.mark.parametrize("gpus", [(1,) * 3, (1,) * 7, (4, 4, 4), (3, 3, 3), (8, 4, 1), (2, 2, 8)])
def test_pods_by_themselves_bring_the_cheapest_nodes_there_are(gpus: tuple[int, ...]) -> None:
    node_demands = [shapes.alone(f"pod-{index}", count) for index, count in enumerate(gpus)]
    plan = shapes.plan(*node_demands, shapes=KINDS)
    assert sum(request.template.cost for request in plan.requests) == pytest.approx(
        cheapest(node_demands, 4)
    )
