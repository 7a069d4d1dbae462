"""Compare two runs: a figure that is more than 1.5 times worse has fallen. Pure.

A time or a rate is scaled by how much slower the machine was. The calibrators tell that: those
around its part of the suite, and around the suite where there are no others. The reference of a
figure that has one tells it too, and counts as much as they do together: it had the machine at the
same moment, but another program is slowed differently.
Quality, memory, simulated time and a wait do not hang on the machine. They are not scaled, and are
compared by the ratio where they have a reference. Memory that differs by less than Python takes at
once is the same memory.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks import bars, record
from tests.soak import verdict

WORST = 1.5
_TIMES = ("ms", "s", "ms/pod")
_RATES = ("/s", "decisions/s", "claims/s", "pods/s")
_OF_OTHERS = {"python": 0.5, "memory": 0.5}
_OF_PROCESSOR_TIME = {"cpu": 0.5, "memory": 0.5}
_OF_DECISIONS = {"cpu": 0.9, "memory": 0.2}
"""Python in processor time: near the least squares of 446 figures of four pairs of runs."""
_OF_THE_NODE = dict.fromkeys(("python", "memory", "fsync", "grpc"), 0.25)
_KERNELS = {
    **dict.fromkeys(("node", "beside", "soak", "hold"), _OF_THE_NODE),
    **dict.fromkeys(("allocator", "page", "queues", "placement", "commands"), _OF_DECISIONS),
}
"""Power of each calibrator by suite; the second group measures processor time."""
_A_WAIT: Mapping[str, float] = {}
_BY_NAME = {
    "CPU of ": _OF_PROCESSOR_TIME,
    "end to end": _OF_OTHERS,
    "kubelet's wipe": _A_WAIT,
}
"""In the name of a figure that differs from the others of its suite."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A figure that is worse: `previous` is scaled to the machine of `now`."""

    id: str
    previous: float
    now: float
    times: float

    @property
    def text(self) -> str:
        """The figure and both values, for people."""
        return f"{self.id}: {self.now:.4g}, was {self.previous:.4g}: {self.times:.2f} x worse"


def falls(
    stored: Iterable[record.Run],
    fresh: Iterable[record.Run],
    goals: Mapping[str, str],
    worst: float = WORST,
) -> list[Fall]:
    """Return every figure of both that fell by more than `worst` times.

    `goals` are bars by a figure's id.
    """
    previous = {run.suite: run for run in stored}
    return [
        fall
        for run in fresh
        if run.suite in previous
        for fall in _of_run(previous[run.suite], run, goals)
        if fall.times > worst
    ]


def differences(
    first: Iterable[record.Run],
    second: Iterable[record.Run],
    goals: Mapping[str, str],
    worst: float = WORST,
) -> list[Fall]:
    """Return every figure of both that is more than `worst` times worse in either, worst first."""
    runs, others = list(first), list(second)
    either = falls(runs, others, goals, worst) + falls(others, runs, goals, worst)
    return sorted(either, key=lambda fall: -fall.times)


def _of_run(previous: record.Run, now: record.Run, goals: Mapping[str, str]) -> list[Fall]:
    stored = previous.by_id()
    compared = (
        _fall(
            key,
            stored[key],
            measured,
            slowdown(
                {**previous.calibrators, **stored[key].calibrators},
                {**now.calibrators, **measured.calibrators},
                _kernel(now.suite, measured.name),
            ),
            goals.get(key, ""),
        )
        for key, measured in now.by_id().items()
        if key in stored
    )
    return [fall for fall in compared if fall is not None]


def _kernel(suite: str, name: str) -> Mapping[str, float]:
    usual = _KERNELS.get(suite, _OF_OTHERS)
    return next((kernel for part, kernel in _BY_NAME.items() if part in name), usual)


def slowdown(
    previous: Mapping[str, float], now: Mapping[str, float], powers: Mapping[str, float]
) -> float | None:
    """Return how many times slower the machine was: the calibrators' ratios, multiplied.

    Each is raised to its power; one that either run lacks leaves its power to the others.
    """
    steps = {
        name: now[name] / previous[name] for name in powers if name in now and name in previous
    }
    if not steps:
        return None
    scale = sum(powers.values()) / sum(powers[name] for name in steps)
    return math.prod(math.pow(step, scale * powers[name]) for name, step in steps.items())


def _fall(
    key: str, previous: record.Figure, now: record.Figure, slower: float | None, bar: str
) -> Fall | None:
    upwards = bars.more_is_better(now, bar)
    if upwards is None or now.says:  # a suite that judges has weighed the figure's error
        return None
    old, new = _compared(previous, now, slower)
    if min(old, new) <= 0 or (now.unit == "MiB" and abs(new - old) < verdict.ARENA_MIB):
        return None
    return Fall(key, old, new, old / new if upwards else new / old)


def _compared(
    previous: record.Figure, now: record.Figure, slower: float | None
) -> tuple[float, float]:
    scales = []
    if previous.reference and now.reference:
        scales.append(now.reference / previous.reference)
    if slower and now.unit in _TIMES:
        scales.append(slower)
    elif slower and now.unit in _RATES:
        scales.append(1 / slower)
    return previous.ours * (statistics.geometric_mean(scales) if scales else 1), now.ours
