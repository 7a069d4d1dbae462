"""Pending workload: a pod, or a gang of pods, whose claims are to be allocated now. Pure."""

import datetime as dt
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto

from driver.controller.commit import write_pool
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.gangs import topology

_ANYWHERE = topology.Topology()


Guard = Callable[[write_pool.WorkItem], AbstractContextManager[None]]
"""Keeps the fault of one item from the others; the item is retried."""


class WorkloadKind(Enum):
    """Kinds of workloads; a bound pod's claims are to be allocated on its own node."""

    POD = auto()
    BOUND_POD = auto()
    GANG = auto()


class ScheduleResult(Enum):
    """Result of scheduling a workload."""

    PLACED = auto()
    UNSCHEDULABLE = auto()
    """No place was found."""
    LIMITED = auto()
    """There is one, and its queue may not have it; or others are leaving for it."""
    RESTING = auto()
    """It was refused a short while ago, and not looked at again."""
    STRANDED = auto()
    """The pod is bound to a node that has no room for its claims: nothing else would help it."""


@dataclass(frozen=True, slots=True)
class PendingWorkload:
    """A pod or gang; all `workloads` are placed together or not at all. `gang` None: one pod."""

    item: write_pool.WorkItem
    workloads: tuple[allocator_types.Workload, ...]
    gang: gang_index.Gang | None = None

    @property
    def kind(self) -> WorkloadKind:
        """Kind of workload: each has a scheduler of its own."""
        if self.is_bound:
            return WorkloadKind.BOUND_POD
        return WorkloadKind.POD if self.gang is None else WorkloadKind.GANG

    @property
    def demand_key(self) -> str:
        """Key for node requests: `pod/team/train-0`, `gang/team/train`."""
        return f"{self.item.kind}/{self.item.key}"

    @property
    def first(self) -> pods.Pod:
        """The pod that stands for all."""
        return self.workloads[0].pod

    @property
    def is_bound(self) -> bool:
        """True for a pod that is on its node already."""
        return self.workloads[0].is_bound

    @property
    def priority(self) -> int:
        """The highest of its pods; higher goes first."""
        return self.gang.priority if self.gang else self.first.priority

    @property
    def since(self) -> str:
        """Since when it waits (RFC 3339)."""
        return self.gang.created if self.gang else self.first.created

    @property
    def topology(self) -> topology.Topology:
        """Required proximity of its pods."""
        return self.gang.topology_request if self.gang else _ANYWHERE

    @property
    def open_claims(self) -> tuple[claims.Claim, ...]:
        """The claims to be allocated, of all its pods."""
        return tuple(claim for workload in self.workloads for claim in workload.open_claims)


def parse_time(text: str) -> float:
    """Return RFC 3339 in seconds since the epoch; 0 if it cannot be read."""
    try:
        return dt.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
