"""Results of gang placement: a placement per member, or the shortage of each domain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import topology


@dataclass(frozen=True, slots=True)
class MemberPlacement:
    """Placement of a member.

    A claim shared by several members is open in the one that gets devices for it; in the others it
    is allocated.
    """

    workload: allocator_types.Workload
    placement: allocator_types.Placement


@dataclass(frozen=True, slots=True)
class GangPlacement:
    """Placements of all members, in the given order; all inside `domain`."""

    members: tuple[MemberPlacement, ...]
    domain: topology.Path

    @property
    def placements(self) -> tuple[allocator_types.Placement, ...]:
        """Node and devices of each member."""
        return tuple(member.placement for member in self.members)


@dataclass(frozen=True, slots=True)
class DomainShortage:
    """At most `fits` members fit in a domain; why its nodes take no more of one shape."""

    domain: topology.Path
    fits: int
    rejections: Mapping[allocator_types.NodeRejection, Sequence[ids.NodeName]]


@dataclass(frozen=True, slots=True)
class GangUnschedulable:
    """Not all members fit, so none is placed.

    `blocker` holds on every node, such as a missing class. Otherwise there is a shortage in each
    domain of the required level (in the cluster, if none is required), the smallest first.
    `unlabelled` were left out: they have no label of that level, or of a coarser one.
    """

    requested: int
    blocker: allocator_types.Unschedulable | None = None
    shortages: tuple[DomainShortage, ...] = ()
    unlabelled: tuple[ids.NodeName, ...] = ()
