"""Expressions that nobody wrote: Kubernetes and we never differ on one that both can answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.oracle import selector_grammar, selectors
from tests.oracle.selector_cases import DRIVER, LISTED, SEEN, answered, kind


@pytest.fixture(scope="module")
def reference(built: Path) -> Iterator[selectors.Selectors]:
    with selectors.Selectors(built) as running:
        yield running


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(expression=selector_grammar.truths)
def test_both_evaluators_give_the_same_verdict(
    reference: selectors.Selectors, expression: str
) -> None:
    present = kind(reference.matches(expression, LISTED, DRIVER))
    here = kind(answered(expression, SEEN))
    if isinstance(here, bool) and isinstance(present, bool):
        assert here == present, expression
    if here is True:
        assert present != "failed", expression


@settings(max_examples=150)
@given(expression=selector_grammar.truths)
def test_most_expressions_are_answered(expression: str) -> None:
    """The grammar is no mere list of refusals, and nothing escapes as an exception."""
    assert kind(answered(expression, SEEN)) in {True, False, "failed", "refused"}
