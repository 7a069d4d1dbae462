"""What is asked again and again of views that differ in who is there. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from driver.resources.core import nodes
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import snapshot

LOOK = 1
"""Steps of looking at one device, or of weighing one set of pods."""
NODE = 10
"""Steps of looking who is on a node."""
ASK = 100
"""Steps of asking a node for all its devices."""


@dataclass(slots=True)
class Meter:
    """Counts steps; past `most` a search ends, and says so."""

    most: int
    steps: int = 0

    def count(self, steps: int) -> None:
        """So many more were made."""
        self.steps += steps

    @property
    def spent(self) -> bool:
        """Whether no step is left."""
        return self.steps >= self.most


@dataclass(frozen=True, slots=True)
class Asking:
    """A workload, read once."""

    workload: allocator_types.Workload
    wants: Sequence[allocator_requests.RequestSpec]
    deciding: settings.Settings
    verdicts: settings.WorkloadFilters

    def answer(self, view: snapshot.Snapshot, node: nodes.Node) -> node_result.NodeResult:
        """What a node of a view says."""
        return node_result.evaluate(self._question(view), node)

    def picks(
        self, view: snapshot.Snapshot, node: nodes.Node, fit: node_result.Fit
    ) -> tuple[allocator_types.DeviceAssignment, ...]:
        """What a node that does gives."""
        return node_result.assignments(self._question(view), node, fit)

    def _question(self, view: snapshot.Snapshot) -> node_result.NodeQuery:
        found = node_capacity.NodeCapacityCache()
        found.refresh(view)
        return node_result.NodeQuery(
            view, found, self.workload, self.wants, self.deciding, self.verdicts
        )


def of(
    view: snapshot.Snapshot, workload: allocator_types.Workload, deciding: settings.Settings
) -> Asking | None:
    """A workload's; None where it can be placed nowhere as it is asked."""
    wants = allocator_requests.parse_requests(view, workload.open_claims)
    if isinstance(wants, allocator_types.Unschedulable):
        return None
    return Asking(workload, wants, deciding, deciding.rules.for_workload(view, workload))
