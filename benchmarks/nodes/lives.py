"""What a day took: when nodes were paid for, how long jobs waited. Pure values."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks import record
from benchmarks.nodes import days
from driver.scheduling.provisioning import node_template

HOUR = 3600.0


@dataclass(slots=True)
class Life:
    """Of a node: it is paid for from being asked for until it is gone, None: not on this day."""

    shape: node_template.NodeTemplate
    gpus: int
    asked: float
    gone: float | None = None

    @property
    def hours(self) -> float:
        """For how long it is paid on the day."""
        return _within(self.asked, self.gone)


@dataclass(frozen=True, slots=True)
class Ran:
    """A job and when it started."""

    job: days.Job
    started: float

    @property
    def waited(self) -> float:
        """Seconds from its coming to its start."""
        return self.started - self.job.at


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of a day by one policy. Hours are those of the day; waits are in minutes."""

    lives: Sequence[Life]
    ran: Sequence[Ran]

    @property
    def node_hours(self) -> float:
        """Of all nodes."""
        return sum(one.hours for one in self.lives)

    @property
    def cost(self) -> float:
        """Hours, each by what the node costs."""
        return sum(one.hours * one.shape.cost for one in self.lives)

    @property
    def paid_for_used(self) -> float:
        """GPU-hours that are paid for each that is used."""
        paid = sum(one.hours * one.gpus for one in self.lives)
        return paid / self.used

    @property
    def used(self) -> float:
        """GPU-hours that jobs had."""
        return sum(
            one.job.gpus * _within(one.started, one.started + one.job.lasts) for one in self.ran
        )

    @property
    def waits(self) -> list[float]:
        """Of every job."""
        return [one.waited / 60 for one in self.ran]

    @property
    def mean_wait(self) -> float:
        """Of all jobs."""
        return statistics.fmean(self.waits)

    @property
    def p95_wait(self) -> float:
        """19 of 20 jobs wait no longer."""
        return record.percentile(self.waits, 0.95)

    @property
    def longest_wait(self) -> float:
        """Of the job that waits longest."""
        return max(self.waits)


def always(found: Iterable[Life]) -> list[Life]:
    """The same nodes, there all day."""
    return [Life(one.shape, one.gpus, 0.0) for one in found]


def _within(begin: float, end: float | None) -> float:
    """Hours of the day between two moments."""
    last = days.DAY_S if end is None else min(end, days.DAY_S)
    return max(0.0, last - max(0.0, begin)) / HOUR
