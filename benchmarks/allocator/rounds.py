"""Decisions a second: a round of ours, one of the reference's, and again."""

import dataclasses
import gc
import statistics

from benchmarks import record
from benchmarks.allocator import cases, ours, reference
from driver.runtime import gc_tuning

WARM_UP, THEIR_WARM_UP = 50, 3
_STRETCH = 60
"""Decisions in succession that one pause slows: of 30 ms at half a millisecond each."""
COLD_ROUNDS, COLD = 5, 3
"""Shapes not met before, all after the last round: with every decision nodes grow more alike."""


class Sample:
    """Rates with their ratio, our p99, and the cost of a shape that was not met before, of a case.

    The last two are processor time, as nothing stands beside them. The rounds of a small cluster
    take seconds: added in parts, minutes apart, one moment of the machine is not all of them.
    """

    def __init__(self, case: cases.Case, other: reference.Reference) -> None:
        self._case, self._other = case, other
        self._decisions: list[list[float]] = []
        self._rates: list[float] = []
        self._theirs: list[float] = []
        self._cold: list[float] = []
        self._calibrations = record.Calibrations([])
        self._cold_calibrations = record.Calibrations([])

    def add(self, rounds: int) -> None:
        """Measure so many rounds, of a cluster and an allocator that are new."""
        mine = ours.Ours(self._case)
        gc_tuning.freeze()  # as the controller, once its caches are filled
        self._other.load(self._case)
        mine.run(WARM_UP)
        self._other.run(THEIR_WARM_UP)
        for _ in range(rounds):
            self._add_round(mine)
        self._add_cold(mine)
        _all_fitted(self._case, mine, self._other)
        del mine
        gc.unfreeze()
        gc.collect()

    def figures(self) -> list[record.Figure]:
        """Return the figures of all rounds, with how slow the machine was in them."""
        name = self._case.name
        rate = record.figure(
            name, "decisions/s", self._rates, self._theirs, center=statistics.geometric_mean
        )
        p99 = record.tail(f"{name}: p99 of a decision", "ms", self._decisions, stretch=_STRETCH)
        cold = self._cold_calibrations.figure(f"{name}: a shape not met before", "ms", self._cold)
        figures = (*map(self._calibrations.add_to, (rate, p99)), cold)
        return [dataclasses.replace(measured, seed=cases.SEED) for measured in figures]

    def _add_round(self, mine: ours.Ours) -> None:
        decided = mine.run(self._case.count)
        self._decisions.append([taken.busy for taken in decided])
        self._rates.append(1000 / statistics.fmean(taken.wall for taken in decided))
        self._calibrations.take()
        self._theirs.append(1000 / statistics.fmean(self._other.run(self._case.theirs)))

    def _add_cold(self, mine: ours.Ours) -> None:
        """Meet new shapes, a reference's decision after each."""
        for _ in self._cold_calibrations.between(range(COLD_ROUNDS)):
            for _ in range(COLD):
                self._cold += [taken.busy for taken in mine.run(1, alike=False)]
                self._other.run(1)


def measure(case: cases.Case, rounds: int, other: reference.Reference) -> list[record.Figure]:
    """Measure all rounds of a case in one go."""
    sample = Sample(case, other)
    sample.add(rounds)
    return sample.figures()


def _all_fitted(case: cases.Case, mine: ours.Ours, other: reference.Reference) -> None:
    """At half fill everything fits: what refused did not do the same work."""
    if mine.refused or other.refused:
        raise RuntimeError(f"{case.name}: refused {mine.refused} and {other.refused}")
