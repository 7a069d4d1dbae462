"""A node whose devices have failed again and again is given no other group of cases."""

from tests.blackbox import turns


def test_the_longest_come_first_and_each_once() -> None:
    handed = turns.Turns(["BB-3", "BB-1", "BB-11", "BB-1"], 2)
    assert [handed.next() for _ in range(4)] == ["BB-11", "BB-1", "BB-3", None]


def test_a_node_whose_devices_failed_is_done_and_the_others_go_on() -> None:
    handed = turns.Turns(["BB-9", "BB-2", "BB-1"], 2)
    assert handed.next() == "BB-9"
    assert handed.next(last="BB-9") is None
    assert [handed.next() for _ in range(3)] == ["BB-2", "BB-1", None]


def test_the_only_node_has_its_devices_fail_last() -> None:
    handed = turns.Turns(["BB-9", "BB-2", "BB-1"], 1)
    assert [handed.next() for _ in range(4)] == ["BB-2", "BB-1", "BB-9", None]
