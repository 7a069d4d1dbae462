"""Compare our node filters with kube-scheduler's on random clusters; 1 where they disagree."""

import argparse
import sys
import time

from tests.oracle.filters import compare


def main() -> int:
    """Run it, and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many clusters, two pods each")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--gates", default="", help="feature gates of a version, such as 1.36")
    asked = parser.parse_args()
    begun = time.perf_counter()
    with compare.scheduler(asked.gates) as talking:
        tally = compare.run(range(asked.first, asked.first + asked.seeds), talking, asked.gates)
    sys.stdout.write(f"{tally.text()}\n{time.perf_counter() - begun:.0f} s\n")
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
