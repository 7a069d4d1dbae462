"""Ways to have nodes: ours, all of them always, one for each pod, first fit as Karpenter has it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.nodes import days, fleet, lives, world
from driver.cli.simulation import openb, replay
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import node_template, planner


class Planned:
    """By the controller's own plan."""

    together = True

    def __init__(self, shapes: tuple[node_template.NodeTemplate, ...] = fleet.SHAPES) -> None:
        self._shapes = shapes

    def ask(self, now: world.Standing) -> Iterator[world.Wanted]:
        """What the plan asks for. No node is called back: an autoscaler has begun to bring it."""
        supply = planner.Supply(self._shapes, now.in_flight, fleet.MOST)
        found = [
            provisioning_demand.NodeDemand(one.job.name, tuple(map(_workload, one.tasks)))
            for one in now.waiting
        ]
        made = planner.make_plan(now.view, supply, found, world.DECIDING)
        if made.impossible:
            raise AssertionError(made.impossible)
        for ask in made.requests:
            yield world.Wanted(ask.template, ask.demand)


def _workload(task: replay.Task) -> allocator_types.Workload:
    return allocator_types.Workload(task.pod, task.claims)


@dataclass(slots=True)
class _Bin:
    """What is left on a node that is to come: CPU in milli, memory in MiB, GPU thousandths.

    `shapes` are those that it may still become.
    """

    shapes: tuple[node_template.NodeTemplate, ...]
    pods: list[openb.Pod] = field(default_factory=list)

    def add(self, pod: openb.Pod) -> bool:
        """Put a pod on it, where one of its shapes has room; whether one has."""
        able = tuple(one for one in self.shapes if _has_room(one, (*self.pods, pod)))
        if able:
            self.shapes = able
            self.pods.append(pod)
        return bool(able)


class FirstFit:
    """Pods by size, the largest first, each onto the first node that has room; no gangs.

    Much as Karpenter does: nodes on their way first, then new ones, which become the cheapest shape
    that has room for all that is on them. GPUs are counted together, as if no pod were confined to
    one.
    """

    together = False

    def ask(self, now: world.Standing) -> Iterable[world.Wanted]:
        """What it asks for, for nobody in particular."""
        coming = [_Bin((one,)) for one in now.in_flight.values()]
        new: list[_Bin] = []
        found = [one.job.pod for one in now.waiting for _ in one.open]
        for pod in sorted(found, key=_size, reverse=True):
            emptiest = sorted(new, key=lambda one: len(one.pods))
            if not any(one.add(pod) for one in (*coming, *emptiest)):
                made = _Bin(fleet.SHAPES)
                if not made.add(pod):
                    raise AssertionError(pod)
                new.append(made)
        return [world.Wanted(min(one.shapes, key=lambda s: s.cost)) for one in new]


def _size(pod: openb.Pod) -> tuple[int, int, int]:
    return pod.demand, pod.cpu, pod.memory


def _has_room(one: node_template.NodeTemplate, pods: Sequence[openb.Pod]) -> bool:
    return (
        sum(pod.demand for pod in pods) <= fleet.milli(one)
        and sum(pod.cpu for pod in pods) <= one.allocatable["cpu"]
        and sum(pod.memory for pod in pods) << 20 <= one.allocatable["memory"]
    )


def ours(jobs: Iterable[days.Job]) -> lives.Outcome:
    """Nodes are planned for what waits, and go when they are idle."""
    return world.World(Planned()).run(jobs)


def first_fit(jobs: Iterable[days.Job]) -> lives.Outcome:
    """As Karpenter does it, with the same placement."""
    return world.World(FirstFit()).run(jobs)


def always_on(jobs: Iterable[days.Job]) -> lives.Outcome:
    """The largest nodes alone, all day as many as the fullest moment takes: nobody ever waits."""
    found = world.World(Planned((fleet.AT_ONCE,)), idle_s=float("inf")).run(jobs)
    return lives.Outcome(lives.always(found.lives), found.ran)


def apart(jobs: Iterable[days.Job]) -> lives.Outcome:
    """A node for each pod, the cheapest that has room for it; it goes as the pod ends."""
    found: list[lives.Life] = []
    ran: list[lives.Ran] = []
    for job in jobs:
        one = min((s for s in fleet.SHAPES if _has_room(s, (job.pod,))), key=lambda s: s.cost)
        started = job.at + one.startup_s
        ran.append(lives.Ran(job, started))
        found += (
            lives.Life(one, fleet.GPUS[one.name], job.at, started + job.lasts)
            for _ in range(job.pods)
        )
    return lives.Outcome(found, ran)


OURS = "ours"
POLICIES = {
    OURS: ours,
    "always on": always_on,
    "one node per pod": apart,
    "first fit, no gangs": first_fit,
}
