"""A figure beside its bar."""

import pytest

from benchmarks import bars, record

PODS = record.figure("pods bound", "pods/s", [36.0], [40.0])
"""36 of ours to 40 of the reference: 0.9 x."""


@pytest.mark.parametrize("bar", [">= 0.9 x", ">= 30 /s", "<= 40 /s", ">= 36"])
def test_a_bar_that_is_met(bar: str) -> None:
    assert bars.judge(PODS, bar) == bars.Verdict(met=True)


@pytest.mark.parametrize(
    ("bar", "by"),
    [(">= 1.5 x", "by 1.7 x"), (">= 54 /s", "by 1.5 x"), ("<= 12 /s", "by 3 x"), ("<= 0", "by 36")],
)
def test_a_bar_that_is_missed_says_by_how_much(bar: str, by: str) -> None:
    assert bars.judge(PODS, bar) == bars.Verdict(met=False, by=by)


def test_nothing_is_said_without_a_bar_or_of_a_ratio_without_a_reference() -> None:
    alone = record.figure("pods bound", "pods/s", [36.0])
    assert bars.judge(PODS, "").met is None
    assert bars.judge(alone, ">= 1.5 x").met is None


@pytest.mark.parametrize(
    ("says", "met"), [("flat", True), ("grows", False), ("", None), ("too short to tell", None)]
)
def test_the_verdict_of_the_suite_counts(says: str, *, met: bool | None) -> None:
    assert bars.judge(record.Figure("RSS, grown", "MiB", 0.1, says=says), "flat").met is met


def test_the_better_direction_follows_the_unit_or_else_the_bar() -> None:
    assert bars.more_is_better(PODS, "") is True
    assert bars.more_is_better(record.Figure("", "ms", 1), ">= 3 x") is False
    assert bars.more_is_better(record.Figure("", "", 1), ">= 3") is True
    assert bars.more_is_better(record.Figure("", "", 1), "") is None
