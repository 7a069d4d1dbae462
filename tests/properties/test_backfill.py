"""EASY's guarantee through the decider: later work never makes the first in line start later."""

from dataclasses import dataclass

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from driver import names
from tests.fakes import quickstart
from tests.fakes.deciding import World
from tests.support.builders import objects

TICK_S = 60.0
TICKS = 12


@dataclass(frozen=True)
class Job:
    """A pod of so many GPUs that comes at a tick and, once it runs, lasts so many ticks."""

    gpus: int
    comes: int
    lasts: int
    declares: bool = True


FIRST = st.lists(
    st.builds(Job, st.integers(1, 3), st.just(0), st.integers(2, 8)), min_size=1, max_size=4
)
LATER = st.lists(
    st.builds(Job, st.integers(1, 2), st.integers(3, 8), st.integers(1, 9), st.booleans()),
    max_size=6,
)


class Days:
    """Jobs in their own time: each ends exactly when it declares."""

    def __init__(self, sizes: list[int]) -> None:
        self.world = World(*sizes)
        self.begun = self.world.clock.monotonic()
        self.ends: dict[str, int] = {}
        self.lasts: dict[str, int] = {}

    def come(self, name: str, job: Job) -> None:
        whole = quickstart.whole(name, job.gpus)
        most = f"{job.lasts}m"
        whole[1]["metadata"]["annotations"] = {names.MAX_RUN_TIME: most} if job.declares else {}
        moment = self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        whole[1]["metadata"]["creationTimestamp"] = moment
        self.lasts[name] = job.lasts
        self.world.add(*whole)

    def until(self, tick: int) -> None:
        """Time passes to a tick, and what is over then goes."""
        self.world.settle(max(self.begun + tick * TICK_S - self.world.clock.monotonic(), 0.0))
        for name in [name for name, end in self.ends.items() if end <= tick]:
            del self.ends[name]
            self.world.remove_pod(name)
            self.world.add(objects.a_claim(f"{name}-gpu"))
        self.world.settle()

    def start(self, tick: int) -> None:
        """Start the workload that has got devices."""
        self.world.settle()
        moment = self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, lasts in [*self.lasts.items()]:
            if self.world.device(f"{name}-gpu") is not None:
                del self.lasts[name]
                self.ends[name] = tick + lasts
                node = self.world.node_of(f"{name}-gpu")
                self.world.change_pod(name, node=node, phase="Running", startTime=moment)
        self.world.settle()


def started(sizes: list[int], first: list[Job], later: list[Job]) -> int | None:
    """The tick at which the large pod gets its devices; it comes at the second."""
    days = Days(sizes)
    for tick in range(TICKS):
        days.until(tick)
        if tick == 0:
            for number, job in enumerate(first):
                days.come(f"first-{number}", job)
        if tick == 1:
            days.come("large", Job(max(sizes), 1, 2))
        for number, job in enumerate(later):
            if job.comes == tick:
                days.come(f"later-{number}", job)
        days.start(tick)
        if tick == 0 and days.lasts:
            return None  # then the large one is not the first in line
        if tick and "large" not in days.lasts:
            return tick
    return None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 4), min_size=1, max_size=2), FIRST, LATER)
def test_the_first_in_line_starts_no_later_than_if_nothing_came_after_it(
    sizes: list[int], first: list[Job], later: list[Job]
) -> None:
    alone = started(sizes, first, [])
    assume(alone is not None)
    beside = started(sizes, first, later)
    assert beside is not None
    assert alone is not None
    assert beside <= alone
