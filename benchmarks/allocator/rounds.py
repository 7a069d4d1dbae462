"""Decisions a second: a round of ours, one of the reference's, and again."""

import gc
import statistics

from benchmarks import record
from benchmarks.allocator import cases, ours, reference
from driver.runtime import gc_tuning

WARM_UP, THEIR_WARM_UP = 50, 3
COLD = 15
"""Shapes not met before, all after the last round: with every decision nodes grow more alike."""


def measure(case: cases.Case, rounds: int, other: reference.Reference) -> list[record.Figure]:
    """Measure rates with their ratio, our p99, and the cost of a shape that was not met before.

    The last two are processor time, as nothing stands beside them.
    """
    mine = ours.Ours(case)
    gc_tuning.freeze()  # as the controller, once its caches are filled
    other.load(case)
    first = mine.run(1)
    mine.run(WARM_UP)
    other.run(THEIR_WARM_UP)
    decisions: list[list[float]] = []
    rates: list[float] = []
    theirs: list[float] = []
    cold = [taken.busy for taken in first]
    for _ in range(rounds):
        decided = mine.run(case.count)
        decisions.append([taken.busy for taken in decided])
        rates.append(1000 / statistics.fmean(taken.wall for taken in decided))
        theirs.append(1000 / statistics.fmean(other.run(case.theirs)))
    for _ in range(COLD):
        cold += [taken.busy for taken in mine.run(1, alike=False)]
        other.run(THEIR_WARM_UP)
    _all_fitted(case, mine, other)
    del mine
    gc.unfreeze()
    gc.collect()
    return [
        record.figure(case.name, "decisions/s", rates, theirs, seed=cases.SEED),
        record.p99(f"{case.name}: p99 of a decision", "ms", decisions, seed=cases.SEED),
        record.figure(f"{case.name}: a shape not met before", "ms", cold, seed=cases.SEED),
    ]


def _all_fitted(case: cases.Case, mine: ours.Ours, other: reference.Reference) -> None:
    """At half fill everything fits: what refused did not do the same work."""
    if mine.refused or other.refused:
        raise RuntimeError(f"{case.name}: refused {mine.refused} and {other.refused}")
