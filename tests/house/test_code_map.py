"""The code map names paths that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "code-map.md").read_text()
PATHS = re.findall(r"^\| Where .*\? \| `([^`]+)` \|$", PAGE, re.MULTILINE)


def test_twenty_questions_have_one_path_each() -> None:
    questions = [line for line in PAGE.splitlines() if line.startswith("| Where ")]
    assert len(questions) == len(PATHS) >= 20


@pytest.mark.parametrize("path", PATHS)
def test_the_path_exists(path: str) -> None:
    assert (ROOT / path).exists()
