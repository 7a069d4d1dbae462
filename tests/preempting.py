"""Clusters in which somebody waits and others may go, for tests of preemption."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from driver import ids
from driver.controller.allocation import outcome
from driver.controller.allocation.whatif import asking
from driver.controller.preempting import law, units, wanted
from driver.controller.preempting import plan as planning
from driver.resources import budgets, pods
from tests import crowds, objects, worlds

NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
OWNER = pods.Owner("ReplicaSet", "web", "u")


@dataclass
class Scene(crowds.Crowd):
    """Pods that run, by default for an hour, with an owner, at priority 0."""

    leaves: Mapping[str, law.Leaf] = field(default_factory=dict)
    disruptions: Sequence[budgets.Budget] = ()

    def of(self, pod: pods.Pod) -> law.Leaf:
        """The queue that a pod's label names."""
        return self.leaves.get(pod.labels.get("queue", ""), law.Leaf())

    def work(
        self, name: str, node: str, *devices: str | objects.Raw, ran: float = 3600, **more: Any
    ) -> pods.Pod:
        """A pod with devices of a node; `more` are fields of it as it was read."""
        started = (NOW - dt.timedelta(seconds=ran)).isoformat()
        usual = {"owner": OWNER, "phase": "Running", "started": started}
        return self.put(replace(self.run(name, node, *devices), **{**usual, **more}))

    @property
    def book(self) -> units.Book:
        made = units.Book()
        for claim in self.held.values():
            made.put_claim(claim.key, claim)
        for pod in self.known.values():
            made.put_pod(pod.key, pod)
        return made

    def right(self, priority: int = 10, leaf: str = "", **more: Any) -> law.Law:
        preemptor = law.Preemptor(priority, leaf, **more)
        return law.Law(preemptor, self, budgets.Guards(self.disruptions), NOW)

    def ask(self, *members: outcome.Workload) -> wanted.Ask:
        return wanted.Ask(self.view, members, worlds.DECIDING)

    def plan(
        self,
        *members: outcome.Workload,
        right: law.Law | None = None,
        most: int = crowds.ENOUGH,
    ) -> wanted.Plan | wanted.NoPlan:
        meter = asking.Meter(most)
        return planning.plan(self.ask(*members), right or self.right(), self.book, meter)

    def judged(self, name: str, right: law.Law | None = None) -> law.Judged:
        """A unit by the name of its pod or gang."""
        found = {one.name: one for one in self.book.all(self.view).values()}
        return (right or self.right()).judged(found[f"default/{name}"])


def of_sizes(**sizes: int) -> Scene:
    """Nodes with so many whole GPUs: `a=2` is node-a."""
    made = Scene()
    for name, count in sizes.items():
        made.node(f"node-{name}", objects.a_slice(f"node-{name}", count), cpu="64")
    return made


def leaving(found: wanted.Plan | wanted.NoPlan) -> list[str]:
    """The pods that leave, by name."""
    assert isinstance(found, wanted.Plan), found
    return [one.partition("/")[2] for one in found.pods]


def where(found: wanted.Plan | wanted.NoPlan) -> list[ids.NodeName]:
    """The node of each member."""
    assert isinstance(found, wanted.Plan), found
    return [seat.placement.node for seat in found.seats]


def none(found: wanted.Plan | wanted.NoPlan) -> wanted.NoPlan:
    assert isinstance(found, wanted.NoPlan), found
    return found
