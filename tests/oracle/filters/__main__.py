"""Compare our node filters and preferences with kube-scheduler's; 1 where they disagree."""

import argparse
import sys
import time

from tests.oracle.filters import compare, scores


def main() -> int:
    """Run it, and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many clusters, two pods each")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--gates", default="", help="feature gates of a version, such as 1.36")
    options = parser.parse_args()
    begun = time.perf_counter()
    with compare.scheduler(options.gates) as talking:
        seeds = range(options.first, options.first + options.seeds)
        filtered = compare.run(seeds, talking, options.gates)
        scored = scores.run(seeds, talking)
    seconds = f"{time.perf_counter() - begun:.0f} s"
    sys.stdout.write(f"{filtered.text()}\n{scored.text()}\n{seconds}\n")
    return 1 if filtered.bad or scored.bad else 0


if __name__ == "__main__":
    sys.exit(main())
