"""Every test that a page names as its proof exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs" / "explanation" / f"{name}.md"
    for name in ("invariants", "testing", "threat-model")
]
NAMED = {one for page in PAGES for one in re.findall(r"`(tests/\S+::\w+)`", page.read_text())}


@pytest.mark.parametrize("named", sorted(NAMED))
def test_the_test_that_is_named_exists(named: str) -> None:
    path, _, name = named.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()
