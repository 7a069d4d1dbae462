"""`python -m benchmarks`: the page of all figures, their curves, and whether they became worse.

Exit code 0: done; 1: the page or a picture is not what the results make (`--check`), a figure fell
(`gate`), or two runs differ (`compare`).
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import curves, gate, goals, readme, record

PAGE = record.ROOT / "benchmarks" / "README.md"
PICTURES = record.ROOT / "docs" / "pictures"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and the pictures, check them, or compare runs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("what", nargs="?", choices=("page", "gate", "compare"), default="page")
    parser.add_argument(
        "runs", nargs="*", help="of `compare`: two folders of results, or revisions of git"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when it is stale")
    parser.add_argument(
        "--against",
        default="HEAD",
        help="revision of git, or folder of results, that `gate` compares with",
    )
    parser.add_argument(
        "--times", type=float, default=gate.WORST, help="how much worse a figure may be"
    )
    options = parser.parse_args(arguments)
    if options.what == "gate":
        stored = record.runs(options.against)
        return _report(gate.falls(stored, record.load(), goals.bars(), options.times))
    if options.what == "compare":
        if len(options.runs) != 2:  # noqa: PLR2004 - as its help says
            parser.error("compare takes two runs")
        first, second = map(record.runs, options.runs)
        return _report(gate.differences(first, second, goals.bars(), options.times))
    return _generated(check=options.check)


def _generated(*, check: bool) -> int:
    results = record.load()
    pictures = {PICTURES / name: svg for name, svg in curves.pictures(results).items()}
    files = {PAGE: readme.page(results, goals.SECTIONS), **pictures}
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text() != text]
    for path in stale:
        if check:
            file = path.relative_to(record.ROOT)
            sys.stderr.write(f"{file} is not what the results make: python -m benchmarks\n")
        else:
            path.write_text(files[path])
    return 1 if check and stale else 0


def _report(falls: Sequence[gate.Fall]) -> int:
    for fall in falls:
        sys.stderr.write(f"{fall.text}\n")
    return 1 if falls else 0


if __name__ == "__main__":
    sys.exit(main())
