"""Every invariant of docs/explanation/invariants.md names a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "invariants.md"


@pytest.mark.parametrize("named", re.findall(r"`(tests/\S+::\w+)`", PAGE.read_text()))
def test_the_test_of_an_invariant_exists(named: str) -> None:
    path, _, name = named.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()
