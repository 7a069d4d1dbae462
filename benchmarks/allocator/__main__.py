"""`python -m benchmarks.allocator [--quick]`: our allocator beside kube-scheduler's, in turn."""

import argparse
import os
import sys

from benchmarks import record
from benchmarks.allocator import cases, reference, rounds

ROUNDS, QUICK_ROUNDS = 5, 2


def main() -> int:
    """Measure and record; the quick way measures less and records nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocator")
    parser.add_argument("--quick", action="store_true", help="under a minute; nothing is stored")
    parser.add_argument("--only", default="", help="cases whose name holds this; nothing is stored")
    given = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs", flush=True)
    figures: list[record.Figure] = []
    with reference.Reference() as other:
        for case in cases.QUICK if given.quick else cases.CASES:
            if given.only in case.name:
                found = rounds.measure(case, QUICK_ROUNDS if given.quick else ROUNDS, other)
                figures += _told(found)
    print(f"load average after: {os.getloadavg()[0]:.1f}")
    return 0


def _told(found: list[record.Figure]) -> list[record.Figure]:
    for one in found:
        print(record.line(one), flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
