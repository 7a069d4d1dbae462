"""Step budget of searches, and queries that are repeated on several snapshots. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from driver.resources.core import nodes
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import snapshot

CHECK_STEPS = 1
"""Steps of checking one device, or of weighing one set of pods."""
NODE_STEPS = 10
"""Steps of reading the holders on a node."""
EVALUATE_STEPS = 100
"""Steps of evaluating a node."""


@dataclass(slots=True)
class StepBudget:
    """Counts steps; past `limit` a search ends, and says so."""

    limit: int
    steps: int = 0

    def spend(self, steps: int) -> None:
        """Count steps."""
        self.steps += steps

    @property
    def is_spent(self) -> bool:
        """True if no step is left."""
        return self.steps >= self.limit


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    """A workload's requests, parsed once."""

    workload: allocator_types.Workload
    requests: Sequence[allocator_requests.RequestSpec]
    allocator_settings: settings.Settings
    filters: settings.WorkloadFilters

    def evaluate(self, view: snapshot.Snapshot, node: nodes.Node) -> node_result.NodeResult:
        """Return the result of a node of a snapshot."""
        return node_result.evaluate(self._node_query(view), node)

    def placement(
        self, view: snapshot.Snapshot, node: nodes.Node, fit: node_result.Fit, explanation: str = ""
    ) -> allocator_types.Placement:
        """Return the placement on a feasible node."""
        return node_result.placement(self._node_query(view), node, fit, explanation)

    def _node_query(self, view: snapshot.Snapshot) -> node_result.NodeQuery:
        capacities = node_capacity.NodeCapacityCache()
        capacities.refresh(view)
        return node_result.NodeQuery(
            view, capacities, self.workload, self.requests, self.allocator_settings, self.filters
        )


def workload_query(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    allocator_settings: settings.Settings,
) -> WorkloadQuery | None:
    """Return the query of a workload; None if it can be placed nowhere."""
    requests = allocator_requests.parse_workload(view, workload)
    if isinstance(requests, allocator_types.Unschedulable):
        return None
    return WorkloadQuery(
        workload,
        requests,
        allocator_settings,
        allocator_settings.rules.for_workload(view, workload),
    )
