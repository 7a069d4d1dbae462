"""Pods that come and go, in their own time: each is decided for as the controller would. Pure.

The clock is the trace's: seconds, and nothing waits for them.
"""

import heapq
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from driver.cli.simulation import scheduler
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.queues import gpu_usage


@dataclass(frozen=True, slots=True)
class Task:
    """A pod that comes `at` a moment, in seconds, with the claims made for it alone.

    It ends `duration_s` seconds after it was placed; None: never.
    """

    pod: pods.Pod
    claims: tuple[claims.Claim, ...]
    at: float = 0.0
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class ReplayRule:
    """Rule of a replay: waiting of pods that fit nowhere, and departures.

    Without both it is the rule by which placement is compared in the literature (FGD, ATC 2023).
    """

    wait: bool = True
    leave: bool = True


@dataclass(slots=True)
class TaskFate:
    """Outcome of a task: the last answer; `placed` and `departed` are times, None: never."""

    task: Task
    answer: scheduler.Answer | None = None
    placed: float | None = None
    departed: float | None = None

    @property
    def waited(self) -> float | None:
        """Seconds from its coming to its place; None without one."""
        return None if self.placed is None else self.placed - self.task.at


@dataclass(frozen=True, slots=True)
class UsageSample:
    """After all that happened at a time: GPU thousandths given out, pods that run and wait."""

    at: float
    used: int
    running: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Report:
    """`capacity` in GPU thousandths. `fates` are in the order of the tasks."""

    capacity: int
    before: int
    fates: tuple[TaskFate, ...]
    course: tuple[UsageSample, ...]

    @property
    def placed(self) -> int:
        """Tasks that found a place, sooner or later."""
        return sum(1 for task_fate in self.fates if task_fate.placed is not None)

    @property
    def used(self) -> int:
        """GPU thousandths given out at the end."""
        return self.course[-1].used if self.course else self.before

    @property
    def most(self) -> int:
        """GPU thousandths given out at the fullest moment."""
        return max((usage_sample.used for usage_sample in self.course), default=self.before)

    @property
    def mean(self) -> float:
        """GPU thousandths given out on average over the time from the first moment to the last."""
        if len(self.course) < 2 or self.course[-1].at <= self.course[0].at:  # noqa: PLR2004
            return float(self.used)
        pairs = zip(self.course, self.course[1:], strict=False)
        total = sum(
            usage_sample.used * (after.at - usage_sample.at) for usage_sample, after in pairs
        )
        return total / (self.course[-1].at - self.course[0].at)


Told = Callable[[int, int], None]
"""Hears how many events are done, and of how many."""


def _nobody(_done: int, _of: int) -> None:
    return


class Replay:
    """Replay of one sequence of tasks on one scheduler; `run` once."""

    def __init__(
        self,
        simulated: scheduler.SimulatedScheduler,
        rule: ReplayRule | None = None,
        report_progress: Told = _nobody,
    ) -> None:
        self._desk = simulated
        self._rule = rule or ReplayRule()
        self._told = report_progress
        self._waiting: list[tuple[int, int, TaskFate]] = []
        self._ends: list[tuple[float, int, TaskFate]] = []
        self._before = self._used = gpu_usage.allocated(simulated.view)
        self._running = 0
        self._done = 0

    def run(self, tasks: Sequence[Task]) -> Report:
        """All of it. Of tasks that come at one time the most important, then the first, goes first.

        At one time pods leave first; those that wait are tried next, most important first, then
        by age; then pods come.
        """
        capacity = gpu_usage.capacity(self._desk.view)
        fates = tuple(TaskFate(task) for task in tasks)
        order = sorted(range(len(tasks)), key=lambda n: (tasks[n].at, -tasks[n].pod.priority, n))
        course: list[UsageSample] = []
        index = 0
        while index < len(order) or self._ends:
            now = self._next(tasks[order[index]].at if index < len(order) else None)
            freed = self._depart(now)
            if freed:
                self._retry(now)
            while index < len(order) and tasks[order[index]].at <= now:
                self._arrive(index, fates[order[index]], now)
                index += 1
                self._tell(len(tasks))
            course.append(UsageSample(now, self._used, self._running, len(self._waiting)))
        return Report(capacity, self._before, fates, tuple(course))

    def _next(self, coming: float | None) -> float:
        ending = self._ends[0][0] if self._ends else None
        return min(item for item in (coming, ending) if item is not None)

    def _tell(self, tasks: int) -> None:
        self._done += 1
        self._told(self._done, tasks)

    def _arrive(self, number: int, fate: TaskFate, now: float) -> None:
        self._desk.add(fate.task.claims)
        if self._try(number, fate, now):
            return
        if self._rule.wait and isinstance(fate.answer, allocator_types.Unschedulable):
            self._waiting.append((-fate.task.pod.priority, number, fate))
        else:
            self._desk.drop(fate.task.claims)

    def _try(self, number: int, fate: TaskFate, now: float) -> bool:
        fate.answer = self._desk.decide(fate.task.pod)
        if not isinstance(fate.answer, scheduler.BoundPod):
            return False
        fate.placed = now
        self._running += 1
        self._used += gpu_usage.claims_usage(self._desk.view, fate.answer.allocations)
        if self._rule.leave and fate.task.duration_s is not None:
            heapq.heappush(self._ends, (now + fate.task.duration_s, number, fate))
        return True

    def _retry(self, now: float) -> None:
        """Retry refused shapes; placements since a refusal freed nothing."""
        refused: set[object] = set()
        waiting, self._waiting = sorted(self._waiting), []
        for priority, number, fate in waiting:
            shape = _shape(fate.task)
            if shape in refused or not self._try(number, fate, now):
                self._waiting.append((priority, number, fate))
                if not _gave_up(fate.answer):
                    refused.add(shape)

    def _depart(self, now: float) -> bool:
        """Return whether any pod left."""
        gone = False
        while self._ends and self._ends[0][0] <= now:
            fate = heapq.heappop(self._ends)[2]
            bound = fate.answer
            if isinstance(bound, scheduler.BoundPod):
                self._used -= self._freed(bound, fate)
                self._running -= 1
                fate.departed = now
                gone = True
        return gone

    def _freed(self, bound: scheduler.BoundPod, fate: TaskFate) -> int:
        previous = gpu_usage.claims_usage(self._desk.view, self._desk.pod_claims(bound.pod))
        self._desk.remove_pod(bound)
        after = gpu_usage.claims_usage(self._desk.view, self._desk.pod_claims(bound.pod))
        self._desk.drop(fate.task.claims)
        return previous - after


def _shape(task: Task) -> Hashable:
    """Tasks that no node tells apart: those of one shape, with the same claims beside their own."""
    own = {claim.key for claim in task.claims}
    shared = tuple(key for key in task.pod.claim_keys if key not in own)
    return shared, workload_signature.workload_signature(
        allocator_types.Workload(task.pod, task.claims)
    )


def _gave_up(answer: scheduler.Answer | None) -> bool:
    return isinstance(answer, allocator_types.Unschedulable) and answer.budget_exceeded
