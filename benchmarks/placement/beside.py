"""One draw of the trace: what is in use of the fleet with our policies, and with others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.placement import openb, reference


@dataclass(frozen=True)
class Course:
    """By policy the GPU thousandths in use after each arrival."""

    trace: openb.Trace
    arriving: Sequence[openb.Pod]
    used: Mapping[str, Sequence[int]]

    def full(self, policy: str) -> float:
        """GPUs in use when all have arrived, in percent of the fleet's."""
        return 100 * self.used[policy][-1] / self.trace.capacity

    def asked(self, policy: str) -> float:
        """The same when 100 % of the fleet has been asked."""
        return 100 * self.used[policy][self._when_all_is_asked()] / self.trace.capacity

    def _when_all_is_asked(self) -> int:
        asked = 0
        for at, pod in enumerate(self.arriving):
            asked += pod.demand
            if asked >= self.trace.capacity:
                return at
        return len(self.arriving) - 1


def fgd(trace: openb.Trace, arriving: Sequence[openb.Pod]) -> list[int]:
    """With the fragmentation gradient alone."""
    return reference.replay(trace, arriving, reference.Fgd(openb.usual(trace)))


def others(trace: openb.Trace, arriving: Sequence[openb.Pod], seed: int) -> dict[str, list[int]]:
    """With each policy from elsewhere."""
    return {
        "FGD": fgd(trace, arriving),
        "best fit": reference.replay(trace, arriving, reference.best_fit),
        "first fit": reference.replay(trace, arriving, reference.first_fit),
        "random": reference.at_random(trace, arriving, seed),
    }
