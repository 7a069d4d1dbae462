"""Comparison of printed output with the files of tests/data/cli.

`GOLDEN=write` renews the files; look at the difference before it is committed.
"""

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "cli"


def same(name: str, text: str) -> None:
    """Fail, with the lines that differ, where the text is not what the file says."""
    path = FOLDER / name
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    expected = path.read_text()
    lines = difflib.unified_diff(
        expected.splitlines(), text.splitlines(), name, "printed", lineterm="", n=0
    )
    assert text == expected, "\n".join(lines)
