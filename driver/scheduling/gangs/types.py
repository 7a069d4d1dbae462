"""A gang's answers: a place for every member, or how many find one in each domain and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import topology


@dataclass(frozen=True, slots=True)
class MemberPlacement:
    """A member's place.

    A claim that several members have is open in the one of them that gets devices for it; in the
    others it is settled.
    """

    workload: allocator_types.Workload
    placement: allocator_types.Placement


@dataclass(frozen=True, slots=True)
class GangPlacement:
    """All members have places, in the order in which they were given; all inside `domain`."""

    members: tuple[MemberPlacement, ...]
    domain: topology.Path

    @property
    def placements(self) -> tuple[allocator_types.Placement, ...]:
        """Where each goes and what it gets."""
        return tuple(one.placement for one in self.members)


@dataclass(frozen=True, slots=True)
class DomainShortage:
    """At most so many members find a place in a domain; why its nodes take no more of one shape."""

    domain: topology.Path
    fits: int
    rejections: Mapping[allocator_types.NodeRejection, Sequence[ids.NodeName]]


@dataclass(frozen=True, slots=True)
class GangUnschedulable:
    """Not all find a place, so none has one.

    `blocker` holds on every node, such as a missing class. Otherwise there is a shortage in each
    domain of the required level (in the cluster, where none is required), the least one first.
    `unlabelled` were left out: they have no label of that level, or of a coarser one.
    """

    requested: int
    blocker: allocator_types.Unschedulable | None = None
    shortages: tuple[DomainShortage, ...] = ()
    unlabelled: tuple[ids.NodeName, ...] = ()
