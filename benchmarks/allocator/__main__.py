"""`python -m benchmarks.allocator [--quick]`: our allocator beside kube-scheduler's, in turn."""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import record
from benchmarks.allocator import cases, endtoend, memory, reference, refusals, rounds, rules
from driver.runtime import gc_tuning

ROUNDS, QUICK_ROUNDS = 4, 2
SMALL = 100
"""Most nodes of the cases that are measured twice: half of their rounds at each end of a suite."""
Part = Callable[[], list[record.Figure] | None]
"""Measures; returns the figures that are complete."""


def main() -> int:
    """Measure, and record unless only a part was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocator")
    parser.add_argument("--quick", action="store_true", help="under a minute; nothing is stored")
    options = parser.parse_args()
    gc_tuning.set_thresholds()  # as the controller
    start = record.Start()
    figures: list[record.Figure] = []
    with reference.Reference() as other:
        for part in _quick(other) if options.quick else _all(other):
            measured = part() or []
            for figure in measured:
                print(record.line(figure), flush=True)
            figures += measured
    if not options.quick:
        path = record.write("allocator", figures, start)
        print(f"\nwritten to {path.relative_to(record.ROOT)}")
    return 0


def _quick(other: reference.Reference) -> Iterator[Part]:
    for case in cases.QUICK:
        yield partial(rounds.measure, case, QUICK_ROUNDS, other)


def _all(other: reference.Reference) -> Iterator[Part]:
    controllers = endtoend.Sample()
    large = [case for case in cases.CASES if case.nodes > SMALL]
    small = [rounds.Sample(case, other) for case in cases.CASES if case.nodes <= SMALL]
    add_to_small = [partial(sample.add, ROUNDS // 2) for sample in small]
    yield controllers.add
    yield from add_to_small
    for case in large:
        yield partial(rounds.measure, case, ROUNDS, other)
    yield controllers.add
    yield partial(record.parts, refusals.impossible)
    yield lambda: refusals.nearly_possible(other)
    yield partial(record.parts, partial(memory.measure, other))
    yield rules.measure
    yield from add_to_small
    yield from (sample.figures for sample in small)
    yield controllers.add
    yield controllers.figures


if __name__ == "__main__":
    sys.exit(main())
