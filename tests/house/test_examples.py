"""One budget for all properties, and failures as code."""

import hypothesis

from tests import conftest


def test_a_long_budget_is_the_least_and_never_cuts_a_longer_one() -> None:
    few = hypothesis.settings(max_examples=30)
    assert conftest.at_least(10_000, few).max_examples == 10_000
    assert conftest.at_least(10, few).max_examples == 30


def test_a_failed_property_prints_an_example() -> None:
    notes = ["Failing test case: test_x(\n    n=100,\n    t='a(b)',\n)"]
    (line,) = conftest.as_code(notes)
    assert line.startswith("@hypothesis.example(\n    n=100,")
    again = "You can add @reproduce_failure('6.1', b'AE==') as a decorator on your test"
    assert list(conftest.as_code([again])) == ["@hypothesis.reproduce_failure('6.1', b'AE==')"]


def test_other_notes_are_no_code() -> None:
    assert not list(conftest.as_code(["Explanation:\n  f(x)", "of the input b'()'"]))
