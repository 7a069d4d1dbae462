"""Every feature gate of dynamic resource allocation has a row in the docs, followed by a test."""

import os
import re
from pathlib import Path

import pytest

from tests.house import feature_gates

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "feature-gates.md"
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| `") and (cells := line.strip("| ").split(" | "))
}
RECORD = feature_gates.record()


def test_every_gate_has_a_row_and_every_row_is_of_a_gate() -> None:
    assert list(ROWS) == sorted(RECORD)


@pytest.mark.parametrize("gate", sorted(RECORD))
def test_a_row_states_stages_answer_and_tests_that_exist(gate: str) -> None:
    *stages, answer, named = ROWS[gate]
    assert stages == [RECORD[gate][version] for version in feature_gates.VERSIONS]
    assert answer
    tests = re.findall(r"`(tests/[^`]+)::(\w+)`", named)
    assert tests
    for path, name in tests:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


def test_the_record_is_what_the_sources_of_kubernetes_state() -> None:
    cache = Path(os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod")
    path = cache / feature_gates.module() / feature_gates.source()
    if not path.exists():
        pytest.skip(f"{feature_gates.module()} is not in Go's module cache")
    assert feature_gates.read(path.read_text()) == RECORD
