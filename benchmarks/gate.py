"""Whether a run is worse than the one that is stored: by more than 1.5 times, it is. Pure.

A figure with a reference is compared by its ratio: both sides had the same machine at the same
moment. One without is compared by itself, scaled by what the calibrators took in both runs.
Quality, memory and simulated time do not hang on the machine and are not scaled.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks import bars, record

WORST = 1.5
_TIMES = ("ms", "s", "ms/pod")
_RATES = ("/s", "decisions/s", "claims/s", "pods/s")
_OF_THE_NODE = ("python", "fsync", "grpc")
_KERNELS = {
    **dict.fromkeys(("node", "beside", "soak", "hold"), _OF_THE_NODE),
    **dict.fromkeys(("page", "queues", "placement", "commands"), ("cpu",)),
}
"""By suite; the second kind measures processor time."""
_OF_OTHERS = ("python",)


@dataclass(frozen=True, slots=True)
class Fall:
    """A figure that is worse: `before` and `now` are ratios, or scaled figures."""

    id: str
    before: float
    now: float
    times: float

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.id}: {self.now:.4g}, was {self.before:.4g}: {self.times:.2f} x worse"


def falls(
    stored: Iterable[record.Run], fresh: Iterable[record.Run], goals: Mapping[str, str]
) -> list[Fall]:
    """Every figure of both that fell by more than WORST; `goals` are bars by a figure's id."""
    before = {one.suite: one for one in stored}
    found = []
    for run in fresh:
        if run.suite in before:
            found += _of_run(before[run.suite], run, goals)
    return found


def _of_run(before: record.Run, now: record.Run, goals: Mapping[str, str]) -> list[Fall]:
    slower, known = slowdown(before, now), before.by_id()
    found = (
        _fall(key, known[key], one, slower, goals.get(key, ""))
        for key, one in now.by_id().items()
        if key in known
    )
    return [one for one in found if one is not None]


def slowdown(before: record.Run, now: record.Run) -> float:
    """How many times slower the machine was: the mean of the calibrators that both runs have."""
    names = _KERNELS.get(now.suite, _OF_OTHERS)
    steps = [
        math.log(now.calibrators[name] / before.calibrators[name])
        for name in names
        if name in now.calibrators and name in before.calibrators
    ]
    return math.exp(sum(steps) / len(steps)) if steps else 1.0


def _fall(
    key: str, before: record.Figure, now: record.Figure, slower: float, bar: str
) -> Fall | None:
    upwards = bars.more_is_better(now, bar)
    if upwards is None or now.says:  # a suite that judges has weighed the figure's error
        return None
    old, new = _compared(before, now, slower)
    if min(old, new) <= 0:
        return None
    times = old / new if upwards else new / old
    return Fall(key, old, new, times) if times > WORST else None


def _compared(before: record.Figure, now: record.Figure, slower: float) -> tuple[float, float]:
    if before.reference and now.reference:
        return before.ours / before.reference, now.ours / now.reference
    scale = slower if now.unit in _TIMES else 1 / slower if now.unit in _RATES else 1.0
    return before.ours * scale, now.ours
