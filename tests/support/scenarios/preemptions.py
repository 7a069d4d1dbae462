"""Clusters in which somebody waits and others may go, for tests of preemption."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from driver import ids
from driver.resources import disruption_budgets
from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import step_budget
from driver.scheduling.preemption import planner as planning
from driver.scheduling.preemption import policy as preemption_policy
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.preemption import victims
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.scenarios import occupied_nodes

NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
OWNER = pods.Owner("ReplicaSet", "web", "u")


@dataclass
class Scene(occupied_nodes.Crowd):
    """Pods that run, by default for an hour, with an owner, at priority 0."""

    leaves: Mapping[str, preemption_policy.QueueState] = field(default_factory=dict)
    disruptions: Sequence[disruption_budgets.Budget] = ()

    def queue_state(self, pod: pods.Pod) -> preemption_policy.QueueState:
        """The queue that a pod's label names."""
        return self.leaves.get(pod.labels.get("queue", ""), preemption_policy.QueueState())

    def work(
        self, name: str, node: str, *devices: str | objects.Raw, ran: float = 3600, **more: Any
    ) -> pods.Pod:
        """A pod with devices of a node; `more` are fields of it as it was read."""
        started = (NOW - dt.timedelta(seconds=ran)).isoformat()
        usual = {"owner": OWNER, "phase": "Running", "started": started}
        return self.put(replace(self.run(name, node, *devices), **{**usual, **more}))

    @property
    def book(self) -> victims.VictimIndex:
        victim_index = victims.VictimIndex()
        for claim in self.held.values():
            victim_index.set_claim(claim.key, claim)
        for pod in self.known.values():
            victim_index.set_pod(pod.key, pod)
        return victim_index

    def right(
        self, priority: int = 10, leaf: str = "", **more: Any
    ) -> preemption_policy.PreemptionPolicy:
        preemptor = preemption_policy.Preemptor(priority, leaf, **more)
        return preemption_policy.PreemptionPolicy(
            preemptor, self, disruption_budgets.BudgetIndex(self.disruptions), NOW
        )

    def ask(self, *members: allocator_types.Workload) -> preemption_types.PreemptionRequest:
        return preemption_types.PreemptionRequest(self.view, members, snapshots.DECIDING)

    def plan(
        self,
        *members: allocator_types.Workload,
        right: preemption_policy.PreemptionPolicy | None = None,
        most: int = occupied_nodes.ENOUGH,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        meter = step_budget.StepBudget(most)
        return planning.make_plan(self.ask(*members), right or self.right(), self.book, meter)

    def judged(
        self, name: str, right: preemption_policy.PreemptionPolicy | None = None
    ) -> preemption_policy.VictimEligibility:
        """A unit by the name of its pod or gang."""
        result = {victim.name: victim for victim in self.book.all_victims(self.view).values()}
        return (right or self.right()).eligibility(result[f"default/{name}"])


def of_sizes(**sizes: int) -> Scene:
    """Nodes with so many whole GPUs: `a=2` is node-a."""
    scene = Scene()
    for name, count in sizes.items():
        scene.node(f"node-{name}", objects.a_slice(f"node-{name}", count), cpu="64")
    return scene


def leaving(result: preemption_types.Plan | preemption_types.NoPlan) -> list[str]:
    """The pods that leave, by name."""
    assert isinstance(result, preemption_types.Plan), result
    return [pod.partition("/")[2] for pod in result.pods]


def where(result: preemption_types.Plan | preemption_types.NoPlan) -> list[ids.NodeName]:
    """The node of each member."""
    assert isinstance(result, preemption_types.Plan), result
    return [seat.placement.node for seat in result.members]


def none(result: preemption_types.Plan | preemption_types.NoPlan) -> preemption_types.NoPlan:
    assert isinstance(result, preemption_types.NoPlan), result
    return result
