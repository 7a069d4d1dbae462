from typing import Any

import pytest

from driver import reasons
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import match_attribute
from tests.support import snapshots
from tests.support.allocation import NODE
from tests.support.builders import objects

NUMA = f"{snapshots.DRIVER}/numa"


def bond(rule: objects.Raw, *values: Any) -> match_attribute.MatchAttribute:
    """A constraint over devices of these values; None: without the attribute."""
    results = [
        objects.with_values(
            objects.a_device(f"gpu-{index}"), **({} if value is None else {"numa": value})
        )
        for index, value in enumerate(values)
    ]
    view = snapshots.view(objects.a_slice("node-a", results))
    (attribute,) = match_attribute.match_constraints(
        [objects.claim("c", constraints=[rule])], candidates.node_devices(view, view.nodes[NODE])
    )
    return attribute


def accepted(attribute: match_attribute.MatchAttribute) -> list[bool]:
    """Return whether each device in turn is accepted, with the accepted ones taken."""
    results = []
    for index in range(len(attribute.values)):
        results.append(attribute.accepts(index))
        if results[-1]:
            attribute.add(index)
    return results


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0, 0, 1, 0), [True, True, False, True]),
        (([1, 2], [2, 3], [3], 2), [True, True, False, True]),
        ((None, 1), [False, True]),
        ((True, 1, True), [True, False, True]),
        (("a", "b"), [True, False]),
    ],
)
def test_agreeing_devices_have_one_value_in_common(values: Any, expected: list[bool]) -> None:
    assert accepted(bond(objects.matching(NUMA), *values)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0, 1, 0, 2), [True, True, False, True]),
        (([1, 2], [2, 3], [3], 4), [True, False, True, True]),
        ((None, 1), [False, True]),
        ((True, 1), [True, True]),
    ],
)
def test_differing_devices_have_no_value_in_common(values: Any, expected: list[bool]) -> None:
    assert accepted(bond(objects.differing(NUMA), *values)) == expected


def test_three_lists_that_agree_in_pairs_only_do_not_agree() -> None:
    assert accepted(bond(objects.matching(NUMA), [1, 2], [2, 3], [3, 1])) == [True, True, False]


def test_an_attribute_without_a_domain_is_none() -> None:
    assert accepted(bond(objects.matching("numa"), 0, 0)) == [True, True]
    assert accepted(bond(objects.matching("nic.example.com/numa"), 0)) == [False]


def test_a_device_that_is_taken_back_counts_no_more() -> None:
    attribute = bond(objects.matching(NUMA), 0, 1, 1)
    attribute.add(0)
    assert not attribute.accepts(1)
    attribute.remove_last()
    assert attribute.common is None
    attribute.add(1)
    assert attribute.accepts(2)
    attribute.clear()
    assert attribute.accepts(0)


def test_common_values_of_matching_devices_are_known() -> None:
    attribute = bond(objects.matching(NUMA), [1, 2], [2, 3])
    attribute.add(0)
    attribute.add(1)
    assert attribute.common == frozenset({("int", 2)})
    attribute.remove_last()
    assert attribute.common == frozenset({("int", 1), ("int", 2)})


def test_a_constraint_is_on_the_requests_that_it_names_and_their_alternatives() -> None:
    attribute = bond(objects.matching(NUMA, "gpu"), 0)
    assert [attribute.covers(0, way) for way in ("gpu", "gpu/big", "nic")] == [True, True, False]
    assert not attribute.covers(1, "gpu")
    narrow = bond(objects.matching(NUMA, "gpu/big"), 0)
    assert [narrow.covers(0, way) for way in ("gpu", "gpu/big", "gpu/small")] == [
        False,
        True,
        False,
    ]
    assert bond(objects.matching(NUMA), 0).covers(0, "whatever")


def test_its_refusals_are_told_by_its_reason() -> None:
    assert bond(objects.matching(NUMA), 0).reason is reasons.Reason.CONSTRAINT_UNMET
