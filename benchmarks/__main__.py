"""`python -m benchmarks`: the page of all figures, and whether they have become worse.

Exit code 0: done; 1: the page is not what the results make (`--check`), or a figure fell (`gate`).
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import gate, goals, readme, record

PAGE = record.ROOT / "benchmarks" / "README.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, check it, or compare with what is committed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("what", nargs="?", choices=("page", "gate"), default="page")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when it is stale")
    parser.add_argument("--against", default="HEAD", help="what `gate` compares with, of git")
    chosen = parser.parse_args(arguments)
    if chosen.what == "gate":
        return _gate(chosen.against)
    return _page(check=chosen.check)


def _page(*, check: bool) -> int:
    text = readme.page(record.load(), goals.SECTIONS)
    if not check:
        PAGE.write_text(text)
        return 0
    if PAGE.is_file() and PAGE.read_text() == text:
        return 0
    sys.stderr.write("benchmarks/README.md is not what the results make: python -m benchmarks\n")
    return 1


def _gate(revision: str) -> int:
    found = gate.falls(record.committed(revision), record.load(), goals.bars())
    for one in found:
        sys.stderr.write(f"{one.text}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
