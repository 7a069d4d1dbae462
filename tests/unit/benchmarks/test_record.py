"""A figure beside its bar."""

import pytest

from benchmarks import record


def of_pods(bar: str) -> record.Figure:
    """36 of ours to 40 of the reference: 0.9 x."""
    return record.figure("pods bound", "pods/s", [36.0], [40.0], bar)


@pytest.mark.parametrize("bar", [">= 0.9 x", ">= 0.9 x of the reference", ">= 30 /s", "<= 40 /s"])
def test_a_bar_that_is_met(bar: str) -> None:
    assert of_pods(bar).met is True


@pytest.mark.parametrize("bar", [">= 1.5 x", ">= 1.5 x of the reference", ">= 50 /s", "<= 30 /s"])
def test_a_bar_that_is_missed(bar: str) -> None:
    assert of_pods(bar).met is False


def test_nothing_is_said_without_a_bar_or_of_a_ratio_without_a_reference() -> None:
    assert of_pods("").met is None
    assert record.figure("pods bound", "pods/s", [36.0], bar=">= 1.5 x").met is None
