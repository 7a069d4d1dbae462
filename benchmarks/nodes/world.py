"""Jobs and nodes that come and go, in a time of their own; pods are placed as the controller does.

A node is there so long after it was requested as its shape says, and goes once it was empty for
`idle_s`, as with Karpenter's `consolidateAfter` and `WhenEmpty`. What it was asked for goes first.
"""

import functools
import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from benchmarks.nodes import days, fleet, lives
from driver import ids, names
from driver.cli.simulation import openb, replay, scheduler
from driver.resources.dra import device_classes
from driver.scheduling.allocator import policies, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.provisioning import node_template
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support.builders import objects

DECIDING = settings.Settings(
    ranking.parse_policies(",".join(policies.DEFAULT)), device_filter.ControllerRules(names.DRIVER)
)
IDLE_S = 300.0
_HELD = "is for what it was asked for"
_SHARED = (
    f'device.driver == "{names.DRIVER}" && device.attributes["{names.DRIVER}"].type == '
    f'"gpu-share" && device.attributes["{names.DRIVER}"].sharing == "mps"'
)


@dataclass(slots=True)
class Waiting:
    """A job that waits, its tasks, and those of its pods that have a place already."""

    job: days.Job
    tasks: Sequence[replay.Task]
    alike: object = None
    bound: dict[int, scheduler.BoundPod] = field(default_factory=dict)

    @property
    def open(self) -> list[replay.Task]:
        """Those without a place."""
        return [one for place, one in enumerate(self.tasks) if place not in self.bound]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A node to be asked for, and the job that it is for; "": for whoever comes."""

    shape: node_template.NodeTemplate
    job: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What an autoscaler sees: who waits, in order, and which nodes are on their way."""

    view: snapshot.Snapshot
    waiting: Sequence[Waiting]
    in_flight: Mapping[ids.NodeName, node_template.NodeTemplate]


class Asking(Protocol):
    """Asks for nodes. `together`: all pods of a job start at once, and nodes are held for them."""

    together: bool

    def ask(self, now: Standing) -> Iterable[Wanted]:
        """Nodes to ask for now, beside those on their way."""
        ...


@dataclass(slots=True)
class _Node:
    life: lives.Life
    job: str
    there: bool = False
    pods: int = 0
    idle_since: float = 0.0


class World:
    """One day by one way of asking for nodes; `run` once."""

    def __init__(self, by: Asking, idle_s: float = IDLE_S) -> None:
        caches = replace(openb.caches(()), classes=_classes())
        self._desk = scheduler.SimulatedScheduler(
            cluster_state.build(names.DRIVER, caches), DECIDING
        )
        self._by = by
        self._idle_s = idle_s
        self._maker = openb.Maker(whole=100)
        self._nodes: dict[ids.NodeName, _Node] = {}
        self._lives: list[lives.Life] = []
        self._waiting: dict[str, Waiting] = {}
        self._ran: list[lives.Ran] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._now = 0.0

    def run(self, jobs: Iterable[days.Job]) -> lives.Outcome:
        """The day, and until all its jobs have started."""
        for job in jobs:
            self._at(job.at, functools.partial(self._come, job))
        while self._events and (self._now < days.DAY_S or self._waiting):
            self._now = self._events[0][0]
            while self._events and self._events[0][0] <= self._now:
                heapq.heappop(self._events)[2]()
            self._serve()
            if self._waiting:
                self._ask()
        return lives.Outcome(self._lives, self._ran)

    def _at(self, moment: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._number), happens))

    # Jobs.

    def _come(self, job: days.Job) -> None:
        tasks = [self._maker.task(f"{job.name}-{n}", job.pod) for n in range(job.pods)]
        for task in tasks:
            self._desk.add(task.claims)
        alike = workload_signature.workload_signature(
            allocator_types.Workload(tasks[0].pod, tasks[0].claims)
        )
        self._waiting[job.name] = Waiting(job, tasks, alike)

    def _serve(self) -> None:
        refused: set[object] = set()
        for one in list(self._waiting.values()):
            own = any(node.job == one.job.name for node in self._nodes.values())
            shape_of = (one.job.pods, one.alike)
            if not own and shape_of in refused:
                continue
            if not self._start(one) and not own:
                refused.add(shape_of)

    def _start(self, one: Waiting) -> bool:
        """Place what has no place; of jobs that start together all pods or none."""
        avoid = self._held_from(one.job.name)
        for place, task in enumerate(one.tasks):
            if place in one.bound:
                continue
            answer = self._desk.decide(task.pod, avoid)
            if isinstance(answer, scheduler.BoundPod):
                one.bound[place] = answer
                self._nodes[answer.placement.node].pods += 1
                continue
            if self._by.together:
                self._undo(one)
            return False
        del self._waiting[one.job.name]
        self._ran.append(lives.Ran(one.job, self._now))
        self._at(self._now + one.job.lasts, functools.partial(self._end, one))
        return True

    def _undo(self, one: Waiting) -> None:
        for bound in one.bound.values():
            self._desk.remove_pod(bound)
            self._nodes[bound.placement.node].pods -= 1
        one.bound.clear()

    def _end(self, one: Waiting) -> None:
        touched = {bound.placement.node for bound in one.bound.values()}
        self._undo(one)
        for task in one.tasks:
            self._desk.drop(task.claims)
        for name in touched:
            self._rest(name)

    def _held_from(self, job: str) -> Mapping[ids.NodeName, str]:
        return {name: _HELD for name, node in self._nodes.items() if self._holds(node, job)}

    def _holds(self, node: _Node, job: str = "") -> bool:
        """Whether a node waits for a job other than this."""
        return self._by.together and node.job != job and node.job in self._waiting

    # Nodes.

    def _ask(self) -> None:
        on_way = {name: one.life.shape for name, one in self._nodes.items() if not one.there}
        found = Standing(self._desk.view, [*self._waiting.values()], on_way)
        for wanted in self._by.ask(found):
            name = ids.NodeName(f"node-{len(self._lives):04}")
            life = lives.Life(wanted.shape, fleet.GPUS[wanted.shape.name], self._now)
            self._lives.append(life)
            self._nodes[name] = _Node(life, wanted.job)
            self._at(self._now + wanted.shape.startup_s, functools.partial(self._arrive, name))

    def _arrive(self, name: ids.NodeName) -> None:
        node = self._nodes[name]
        node.there = True
        self._desk.view.set_node(name, node.life.shape.build_node(name))
        for one in node.life.shape.build_slices(name):
            self._desk.view.set_slice(one.name, one)
        self._rest(name)

    def _rest(self, name: ids.NodeName) -> None:
        """It may be empty from now on."""
        node = self._nodes[name]
        if not node.pods and self._idle_s < float("inf"):
            node.idle_since = self._now
            leave = functools.partial(self._leave, name, self._now)
            self._at(self._now + self._idle_s, leave)

    def _leave(self, name: ids.NodeName, since: float) -> None:
        """It goes if nothing came since it was empty; one that is held is looked at again."""
        node = self._nodes.get(name)
        if node is None or node.pods or node.idle_since != since:
            return
        if self._holds(node):
            self._rest(name)
            return
        node.life.gone = self._now
        for one in node.life.shape.build_slices(name):
            self._desk.view.set_slice(one.name, None)
        self._desk.view.set_node(name, None)
        del self._nodes[name]


def _classes() -> Mapping[ids.Key, device_classes.DeviceClass]:
    found = (objects.device_class(), objects.device_class(names.CLASS_MPS, _SHARED))
    return {ids.Key(one.name): one for one in found}
