"""Verdict on samples: slopes by least squares, and their uncertainty. Pure.

What is judged is the second half of a run, and of that only what the process did after its first
WARM_UP cycles. The bound of memory is 1 MiB an hour at five claims a second, that is a MiB in
CYCLES_PER_MIB cycles; Python takes memory by arenas of 1 MiB, so a shorter run is allowed one. A
leading controller that has not had LEADER_WARM_UP pods yet may take what its caches still need.
Files and threads are whole things: over the half fewer than one may have been added. A client opens
a TCP connection when all that it has are busy, and keeps it: CONNECTIONS of these may be added.

A slope has an error. Samples that follow each other are alike, so they count as fewer than they are
(by the correlation of neighbours). Beyond its bound by more than two errors it GROWS; two errors
within it it is FLAT; between them the run was too short, or too noisy, to tell (UNTOLD).
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

CYCLES_PER_MIB = 18_000
ARENA_MIB = 1.0
CONNECTIONS = 8.0
WARM_UP = 1_000
LEADER = "leading controller"
LEADER_WARM_UP, FILL_MIB = 5_000, 4.0
"""Pods until a leading controller's caches are full, and what they take of it after WARM_UP."""
FEWEST = 12
"""Samples of which nothing is said when there are fewer."""
ERRORS = 2.0
EXACT = 1e-12


@dataclass(frozen=True, slots=True)
class Sample:
    """Sample of a process at one moment, after so many cycles.

    `fds`: open files that are no TCP connection.
    """

    at_s: float
    cycles: int
    pid: int
    rss_mib: float
    fds: int
    connections: int
    threads: int


class Says(StrEnum):
    """Interpretation of a slope."""

    FLAT = "flat"
    GROWS = "grows"
    UNTOLD = "too short to tell"


@dataclass(frozen=True, slots=True)
class Growth:
    """Over the judged half: by the fitted line, its error, and what is allowed."""

    name: str
    unit: str
    grown: float
    error: float
    allowed: float
    samples: int
    cycles: int
    seen: tuple[float, float]

    @property
    def says(self) -> Says:
        """Return what follows."""
        if self.samples < FEWEST:
            return Says.UNTOLD
        if self.grown - ERRORS * self.error > self.allowed:
            return Says.GROWS
        flat = self.grown + ERRORS * self.error <= self.allowed
        return Says.FLAT if flat else Says.UNTOLD

    @property
    def text(self) -> str:
        """Return it as text for people."""
        return (
            f"{self.name}: {self.says}: {self.grown:+.2f} {self.unit} (error {self.error:.2f}) "
            f"over {self.cycles} cycles, allowed {self.allowed:.2f}; "
            f"{self.seen[0]:.1f} to {self.seen[1]:.1f}, {self.samples} samples"
        )


def judged(samples: Sequence[Sample]) -> list[Sample]:
    """Return those of the second half, of the process that lived last, once it was warm."""
    if not samples:
        return []
    last = samples[-1]
    mine = [sample for sample in samples if sample.pid == last.pid]
    since = max(last.cycles / 2, mine[0].cycles + WARM_UP)
    return [sample for sample in mine if sample.cycles >= since]


def growths(who: str, samples: Sequence[Sample]) -> list[Growth]:
    """Return how memory, files, connections and threads of one process grew."""
    results = judged(samples)
    measured: dict[str, tuple[str, Sequence[float], float]] = {
        "RSS": ("MiB", [result.rss_mib for result in results], _allowed_mib(who, samples, results)),
        "open files": ("files", [result.fds for result in results], 1.0),
        "connections": ("connections", [result.connections for result in results], CONNECTIONS),
        "threads": ("threads", [result.threads for result in results], 1.0),
    }
    return [
        _growth(f"{part} of the {who}", unit, results, values, allowed)
        for part, (unit, values, allowed) in measured.items()
    ]


def _allowed_mib(who: str, samples: Sequence[Sample], results: Sequence[Sample]) -> float:
    """Return what memory may grow by in the judged samples; a leader may fill its caches first."""
    if not results:
        return ARENA_MIB
    first, last = results[0], results[-1]
    born = next(sample.cycles for sample in samples if sample.pid == last.pid)
    if who == LEADER and first.cycles - born < LEADER_WARM_UP:
        return FILL_MIB
    return max(ARENA_MIB, (last.cycles - first.cycles) / CYCLES_PER_MIB)


def any_grows(results: Iterable[Growth]) -> bool:
    """Return whether something grows."""
    return any(growth.says is Says.GROWS for growth in results)


def _growth(
    name: str, unit: str, samples: Sequence[Sample], values: Sequence[float], allowed: float
) -> Growth:
    if len(samples) < FEWEST or samples[0].cycles == samples[-1].cycles:
        return Growth(name, unit, 0.0, 0.0, allowed, 0, 0, (0.0, 0.0))
    cycles = [float(sample.cycles) for sample in samples]
    slope, error = fit(cycles, values)
    width = cycles[-1] - cycles[0]
    seen = (min(values), max(values))
    return Growth(
        name, unit, slope * width, error * width, allowed, len(samples), int(width), seen
    )  # fmt: skip


def fit(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """The slope of ys by xs, and its error."""
    slope, intercept = statistics.linear_regression(xs, ys)
    left = [y - (slope * x + intercept) for x, y in zip(xs, ys, strict=True)]
    squares = sum(value * value for value in left)
    spread = sum((x - statistics.fmean(xs)) ** 2 for x in xs)
    if squares < EXACT:
        return slope, 0.0
    alike = sum(a * b for a, b in itertools.pairwise(left)) / squares
    alike = min(max(alike, 0.0), 0.95)
    variance = squares / (len(xs) - 2) * (1 + alike) / (1 - alike)
    return slope, math.sqrt(variance / spread)
