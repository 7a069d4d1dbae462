"""What commands print, compared exactly with files of tests/data/cli.

`GOLDEN=write` renews the files; look at the difference before it is committed.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "cli"


def same(name: str, text: str) -> None:
    """The text is what the file says."""
    path = FOLDER / name
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
