"""The ratchet of the vocabulary: each measure of `vocabulary` may only fall."""

import ast
import json
from pathlib import Path

import pytest

from tests.house import vocabulary

CEILINGS = Path(__file__).with_name("ceilings.json")


def function(source: str) -> ast.FunctionDef:
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def test_no_measure_is_above_its_ceiling() -> None:
    ceilings = json.loads(CEILINGS.read_text())
    values = vocabulary.measures()
    print(json.dumps(values, indent=2))
    assert values.keys() == ceilings.keys()
    assert {name: value for name, value in values.items() if value > ceilings[name]} == {}


def test_a_ceiling_is_lowered_with_its_measure() -> None:
    ceilings = json.loads(CEILINGS.read_text())
    slack = {
        name: (value, ceilings[name])
        for name, value in vocabulary.measures().items()
        if value < ceilings[name]
    }
    assert slack == {}, f"lower these in {CEILINGS.name}"


def test_filler_names_are_seen_as_parameters_and_variables() -> None:
    assert vocabulary.bound_names(function("def f(one):\n    found = one")) == {"one", "found"}


@pytest.mark.parametrize("text", ["Who may go.", "What waits, and why.", "Of a claim: its pods."])
def test_riddles_are_seen(text: str) -> None:
    assert vocabulary.opens_with_riddle(function(f'def f():\n    """{text}"""'))


@pytest.mark.parametrize("text", ["Return the pods.", "Cache of results.", "Whatever is free."])
def test_plain_docstrings_pass(text: str) -> None:
    assert not vocabulary.opens_with_riddle(function(f'def f():\n    """{text}"""'))


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert [sorted(circle) for circle in vocabulary.circles(graph)] == [["a", "b", "c"]]


def test_packages_have_no_circle() -> None:
    assert vocabulary.circles(vocabulary.import_graph()) == []
