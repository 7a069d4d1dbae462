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
    found = [
        objects.with_values(objects.a_device(f"gpu-{at}"), **({} if one is None else {"numa": one}))
        for at, one in enumerate(values)
    ]
    view = snapshots.view(objects.a_slice("node-a", found))
    (made,) = match_attribute.match_constraints(
        [objects.claim("c", constraints=[rule])], candidates.node_devices(view, view.nodes[NODE])
    )
    return made


def accepted(one: match_attribute.MatchAttribute) -> list[bool]:
    """Return whether each device in turn is accepted, with the accepted ones taken."""
    found = []
    for place in range(len(one.values)):
        found.append(one.accepts(place))
        if found[-1]:
            one.add(place)
    return found


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
    one = bond(objects.matching(NUMA), 0, 1, 1)
    one.add(0)
    assert not one.accepts(1)
    one.remove_last()
    assert one.common is None
    one.add(1)
    assert one.accepts(2)
    one.clear()
    assert one.accepts(0)


def test_what_agreeing_devices_have_in_common_is_known() -> None:
    one = bond(objects.matching(NUMA), [1, 2], [2, 3])
    one.add(0)
    one.add(1)
    assert one.common == frozenset({("int", 2)})
    one.remove_last()
    assert one.common == frozenset({("int", 1), ("int", 2)})


def test_a_constraint_is_on_the_requests_that_it_names_and_their_alternatives() -> None:
    one = bond(objects.matching(NUMA, "gpu"), 0)
    assert [one.covers(0, way) for way in ("gpu", "gpu/big", "nic")] == [True, True, False]
    assert not one.covers(1, "gpu")
    narrow = bond(objects.matching(NUMA, "gpu/big"), 0)
    assert [narrow.covers(0, way) for way in ("gpu", "gpu/big", "gpu/small")] == [
        False,
        True,
        False,
    ]
    assert bond(objects.matching(NUMA), 0).covers(0, "whatever")


def test_its_refusals_are_told_by_its_reason() -> None:
    assert bond(objects.matching(NUMA), 0).reason is reasons.Reason.CONSTRAINT_UNMET
