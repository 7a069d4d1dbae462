import pytest

from driver import ids
from driver.resources.core import node_selectors
from tests.support.builders import objects

A, B = ids.NodeName("node-a"), ids.NodeName("node-b")


def reach(**raw: object) -> node_selectors.DeviceReach:
    return node_selectors.parse_reach(raw, "spec")


def expression(key: str, operator: str, *values: str) -> objects.Raw:
    return {"key": key, "operator": operator, "values": [*values]}


def terms(*results: objects.Raw) -> objects.Raw:
    return {"nodeSelectorTerms": [*results]}


RACK = terms({"matchExpressions": [expression("rack", "In", "r1")]})


def test_devices_are_used_on_one_node_everywhere_or_where_a_selector_matches() -> None:
    labels = {"rack": "r1"}
    assert [reach(nodeName="node-a").covers(name, {}) for name in (A, B)] == [True, False]
    assert reach(allNodes=True).covers(B, {})
    assert reach(nodeSelector=RACK).covers(A, labels)
    assert not reach(nodeSelector=RACK).covers(A, {"rack": "r2"})


def test_without_a_selector_devices_are_usable_nowhere() -> None:
    for device_reach in (reach(), reach(nodeName="", allNodes=False, nodeSelector=None)):
        assert device_reach is node_selectors.NOWHERE
        assert not device_reach.covers(A, {"rack": "r1"})


def test_the_first_that_is_set_decides() -> None:
    both = reach(nodeName="node-a", allNodes=True, nodeSelector=RACK)
    assert [both.covers(name, {"rack": "r1"}) for name in (A, B)] == [True, False]
    assert reach(allNodes=True, nodeSelector=RACK).covers(A, {})


@pytest.mark.parametrize(
    ("operator", "values", "of_r1", "of_none"),
    [
        ("In", ("r1", "r2"), True, False),
        ("NotIn", ("r1",), False, True),
        ("Exists", (), True, False),
        ("DoesNotExist", (), False, True),
        ("Gt", ("1",), False, False),
        ("Near", ("r1",), False, False),
    ],
)
def test_a_requirement_holds_by_its_operator(
    operator: str, values: tuple[str, ...], *, of_r1: bool, of_none: bool
) -> None:
    node_selector = node_selectors.parse(
        terms({"matchExpressions": [expression("rack", operator, *values)]})
    )
    assert node_selector.matches(A, {"rack": "r1"}) is of_r1
    assert node_selector.matches(A, {}) is of_none


@pytest.mark.parametrize(
    ("tier", "operator", "holds"),
    [
        ("5", "Gt", True),
        ("4", "Gt", False),
        ("3", "Lt", True),
        ("x", "Lt", False),
        ("", "Gt", False),
    ],
)
def test_numbers_are_compared_as_numbers(tier: str, operator: str, *, holds: bool) -> None:
    node_selector = node_selectors.parse(
        terms({"matchExpressions": [expression("tier", operator, "4")]})
    )
    assert node_selector.matches(A, {"tier": tier}) is holds


def test_one_term_must_match_with_all_its_requirements() -> None:
    both = {
        "matchExpressions": [expression("rack", "In", "r1")],
        "matchFields": [expression("metadata.name", "In", "node-a")],
    }
    other = {"matchExpressions": [expression("gpu", "Exists")]}
    node_selector = node_selectors.parse(terms(both, other))
    assert node_selector.matches(A, {"rack": "r1"})
    assert not node_selector.matches(B, {"rack": "r1"})
    assert node_selector.matches(B, {"gpu": ""})


def test_an_empty_term_matches_nothing() -> None:
    assert not node_selectors.parse(terms({})).matches(A, {"rack": "r1"})
    assert not node_selectors.parse(terms()).matches(A, {"rack": "r1"})


def test_a_selector_reads_back_as_it_was_written() -> None:
    raw = terms(
        {"matchExpressions": [expression("rack", "In", "r1")]},
        {"matchFields": [expression("metadata.name", "In", "node-a")]},
    )
    assert node_selectors.render(node_selectors.parse(raw)) == raw
    assert node_selectors.single_node_selector(A).matches(A, {})
    assert not node_selectors.single_node_selector(A).matches(B, {})
