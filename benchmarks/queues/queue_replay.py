"""Jobs that come and go and have their turns by queues, in their own time. Pure.

The order is the controller's (`queues.engine`), each pod is placed as the controller places it
(`scheduler`), and the clock is the simulation's: seconds, and nothing waits for them.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.queues import earliest_start
from driver import ids
from driver.cli.simulation import replay, scheduler
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.queues import engine, order
from driver.scheduling.queues import resources as queue_resources

_KEPT = "kept for the first in line"


@dataclass(frozen=True, slots=True)
class Job:
    """Pods that run together or not at all, all alike; a queue's. `duration_s`: from its start.

    When it comes is its first task's `at`, how important it is, its first pod's priority.
    """

    name: str
    leaf: str
    tasks: tuple[replay.Task, ...]
    duration_s: float

    @property
    def at(self) -> float:
        """When it comes."""
        return self.tasks[0].at

    @property
    def priority(self) -> int:
        """Priority of its pods."""
        return self.tasks[0].pod.priority


@dataclass(slots=True)
class JobFate:
    """Outcome of a job. Since `oldest_since` none of its queue had waited longer."""

    job: Job
    started: float | None = None
    ended: float | None = None
    oldest_since: float | None = None

    @property
    def waited(self) -> float | None:
        """Seconds from its coming to its start; None without one."""
        return None if self.started is None else self.started - self.job.at


Next = Callable[[Job, float], Iterable[Job]]
"""The jobs that come because one ended, not before the moment that is named."""
Told = Callable[[float, float], None]
"""Hears before each change from when to when all stayed as it is."""


def _none(_job: Job, _now: float) -> Iterable[Job]:
    return ()


def _nobody(_since: float, _until: float) -> None:
    return


@dataclass(frozen=True, slots=True)
class JobRules:
    """Rules of a simulation.

    `backfill`: work that would delay the first that does not fit may not use its reservation;
    without it whatever fits is placed. `then`: job that follows when one ends. `told`: observer.
    """

    backfill: bool = True
    then: Next = _none
    told: Told = _nobody


@dataclass(slots=True)
class _Running:
    fate: JobFate
    bound: list[scheduler.BoundPod]


@dataclass(slots=True)
class _Pass:
    """One look at all that waits: what is kept for the first, what was refused beside that."""

    kept: earliest_start.EarliestStart | None = None
    refused: set[Hashable] = field(default_factory=set)


def _name(pending_entry: order.PendingEntry) -> str:
    return str(pending_entry.key).partition("/")[2]


class JobScheduler:
    """Runs jobs on one scheduler, by one queue engine; `run` once."""

    def __init__(
        self,
        simulated: scheduler.SimulatedScheduler,
        by: engine.QueueEngine,
        manner: JobRules | None = None,
    ) -> None:
        self._desk = simulated
        self._engine = by
        self._manner = manner or JobRules()
        self._fates: dict[str, JobFate] = {}
        self._coming: list[tuple[float, int, Job]] = []
        self._waiting: dict[str, order.PendingEntry] = {}
        self._ends: list[tuple[float, int, str]] = []
        self._running: dict[str, _Running] = {}
        self._shapes: dict[str, Hashable] = {}
        self._asked: dict[Hashable, queue_resources.Amounts] = {}
        self._refused: set[Hashable] = set()
        self._made = 0
        self._now = 0.0

    def run(self, jobs: Iterable[Job], until: float = float("inf")) -> Sequence[JobFate]:
        """All of it, or what happens until a moment: fates in the order in which jobs came."""
        by = self._engine
        by.refresh(self._desk.view)
        for job in jobs:
            self._come(job)
        while self._coming or self._ends:
            now = min(item[0][0] for item in (self._coming, self._ends) if item)
            self._manner.told(self._now, min(now, until))
            if now > until:
                break
            self._now = now
            freed = self._depart()
            arrived = self._arrive()
            if freed:
                self._refused.clear()
            if freed or arrived - self._refused:
                self._place()
        return tuple(self._fates.values())

    def set_running(self, job: Job) -> bool:
        """A job that runs already when all begins; whether it found a place."""
        self._come(job)
        self._engine.refresh(self._desk.view)
        self._arrive()
        return self._start(job, _Pass())

    def queue_usage(self) -> Iterator[tuple[str, int, int]]:
        """Yield per active queue: GPU thousandths in use, and requested by pending jobs."""
        entries: dict[str, list[int]] = {}
        for running in self._running.values():
            job = running.fate.job
            entries.setdefault(job.leaf, [0, 0])[0] += self._asked[self._shapes[job.name]].gpus
        for pending_entry in self._waiting.values():
            entries.setdefault(pending_entry.queue, [0, 0])[1] += pending_entry.requested.gpus
        for leaf, (has, wants) in sorted(entries.items()):
            yield leaf, has, wants

    def _come(self, job: Job) -> None:
        self._made += 1
        heapq.heappush(self._coming, (job.at, self._made, job))

    def _arrive(self) -> set[Hashable]:
        """The shapes of what came."""
        result: set[Hashable] = set()
        while self._coming and self._coming[0][0] <= self._now:
            _, number, job = heapq.heappop(self._coming)
            for task in job.tasks:
                self._desk.add(task.claims)
            shape = self._shape(job)
            result.add(shape)
            self._fates[job.name] = JobFate(job)
            self._waiting[job.name] = order.PendingEntry(
                f"{number:09}/{job.name}", job.leaf, job.priority, job.at, self._asked[shape]
            )
            self._renew_oldest(job.leaf)
        return result

    def _shape(self, job: Job) -> Hashable:
        first = job.tasks[0]
        shape = (
            len(job.tasks),
            workload_signature.workload_signature(
                allocator_types.Workload(first.pod, first.claims)
            ),
        )
        self._shapes[job.name] = shape
        if shape not in self._asked:
            amounts = queue_resources.requested_amounts(self._desk.view, first.claims)
            self._asked[shape] = amounts.times(len(job.tasks))
        return shape

    def _depart(self) -> bool:
        gone = False
        while self._ends and self._ends[0][0] <= self._now:
            running = self._running.pop(heapq.heappop(self._ends)[2])
            job = running.fate.job
            for bound in running.bound:
                self._desk.remove_pod(bound)
            for task in job.tasks:
                self._desk.drop(task.claims)
                for claim in task.claims:
                    self._engine.charge(claim.key, job.leaf, None, self._now)
            running.fate.ended = self._now
            for another in self._manner.then(job, self._now):
                self._come(another)
            gone = True
        return gone

    def _place(self) -> None:
        look = _Pass()
        shapes_left = {self._shapes[name] for name in self._waiting}
        for pending_entry in self._engine.schedule_order([*self._waiting.values()], self._now):
            if shapes_left <= self._refused:
                return
            job = self._fates[_name(pending_entry)].job
            if self._engine.exceeded_limit(
                job.leaf, pending_entry.requested
            ) is None and not self._start(job, look):
                self._wait(job, look)

    def _wait(self, job: Job, look: _Pass) -> None:
        """The first that does not fit has kept for it where it will start soonest."""
        if self._manner.backfill and look.kept is None:
            look.kept = self._soonest(job)

    def _start(self, job: Job, look: _Pass) -> bool:
        """Place all of its pods, or none."""
        shape = self._shapes[job.name]
        late = look.kept is not None and self._now + job.duration_s > look.kept.at
        avoid = dict.fromkeys(look.kept.nodes, _KEPT) if late and look.kept else {}
        if shape in self._refused or (late and shape in look.refused):
            return False
        bound = self._seated(job, avoid)
        if bound is None:
            (look.refused if late else self._refused).add(shape)
            return False
        del self._waiting[job.name]
        fate = self._fates[job.name]
        fate.started = self._now
        self._renew_oldest(job.leaf)
        self._running[job.name] = _Running(fate, bound)
        heapq.heappush(self._ends, (self._now + job.duration_s, self._made, job.name))
        for placed in bound:
            for claim in placed.allocations:
                taken = claim.allocation.results if claim.allocation else ()
                amounts = queue_resources.results_amounts(self._desk.view, taken)
                self._engine.charge(claim.key, job.leaf, amounts, self._now)
        return True

    def _seated(
        self, job: Job, avoid: Mapping[ids.NodeName, str]
    ) -> list[scheduler.BoundPod] | None:
        bound: list[scheduler.BoundPod] = []
        for task in job.tasks:
            answer = self._desk.decide(task.pod, avoid)
            if not isinstance(answer, scheduler.BoundPod):
                for undone in bound:
                    self._desk.remove_pod(undone)
                return None
            bound.append(answer)
        return bound

    def _renew_oldest(self, leaf: str) -> None:
        mine = [
            pending_entry for pending_entry in self._waiting.values() if pending_entry.queue == leaf
        ]
        if mine:
            fate = self._fates[
                _name(
                    min(
                        mine,
                        key=lambda pending_entry: (pending_entry.since, str(pending_entry.key)),
                    )
                )
            ]
            if fate.oldest_since is None:
                fate.oldest_since = self._now

    def _soonest(self, job: Job) -> earliest_start.EarliestStart | None:
        view = self._desk.view
        free = {
            name: node_capacity.compute_capacity(view, node).idle_gpus
            for name, node in view.nodes.items()
        }
        return earliest_start.find_earliest(free, self._endings(), len(job.tasks), self._gpus(job))

    def _gpus(self, job: Job) -> int:
        whole = self._asked[self._shapes[job.name]].gpus // len(job.tasks)
        return max(1, whole // queue_resources.FULL)

    def _endings(self) -> Iterator[earliest_start.GpuRelease]:
        for moment, _, name in self._ends:
            running = self._running[name]
            for bound in running.bound:
                yield earliest_start.GpuRelease(
                    moment, ids.NodeName(bound.placement.node), len(bound.placement.assignments)
                )
