"""What a plan is asked for, and what it answers. Pure."""

import collections
import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from driver import ids, reasons
from driver.resources import queues
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import cost as explain_cost
from driver.scheduling.explain import holders
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import policy, victims
from driver.scheduling.snapshot import snapshot

_PODS = 32
"""Bits for a number of pods."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A pod, or the pods of a gang, that find no place in a view.

    `refused`: that they find none is known, so that it is not tried again.
    """

    view: snapshot.Snapshot
    members: Sequence[allocator_types.Workload]
    deciding: settings.Settings
    near: topology.Topology = field(default_factory=topology.Topology)
    refused: bool = False

    @property
    def single(self) -> allocator_types.Workload | None:
        """The one pod, where it is one and nothing is asked of where."""
        return self.members[0] if len(self.members) == 1 and not self.near.least else None

    @property
    def uids(self) -> frozenset[ids.PodUid]:
        """Its pods."""
        return frozenset(one.pod.uid for one in self.members)


@dataclass(frozen=True, slots=True)
class Plan:
    """Without `leaving` each member has its seat; none of them may stay. By name.

    `seats` are in the order of the members, in the view without those who leave. `least`: nothing
    that is allowed costs less; otherwise the steps ended before that was known.
    """

    leaving: tuple[policy.Judged, ...]
    seats: tuple[gang_types.Seat, ...]
    least: bool = True

    @property
    def lost_s(self) -> float:
        """The GPU-seconds that are lost."""
        return sum(one.lost for one in self.leaving) / queues.THOUSAND

    @property
    def pods(self) -> tuple[ids.Key, ...]:
        """The pods to evict."""
        return tuple(sorted(one.key for found in self.leaving for one in found.unit.people))

    @property
    def cost(self) -> explain_cost.Cost:
        """Thousandths of a GPU times seconds, then pods: less is better."""
        return cost_of(self.leaving)


class Why(enum.Enum):
    """Why there is no plan."""

    NEVER = "never"
    """Its preemptionPolicy is Never."""
    IN_VAIN = "in vain"
    """Even without all who may go it would not fit; or not all that would have to may go."""
    SPENT = "spent"
    """The steps ended before one was found."""


@dataclass(frozen=True, slots=True)
class NoPlan:
    """None. `units` is how many there are, `barred` how many of them may not go and why."""

    why: Why
    units: int = 0
    barred: Mapping[reasons.Reason, int] = field(default_factory=dict)


def cost_of(leaving: Iterable[policy.Judged]) -> tuple[int, int]:
    """What it costs that these go."""
    found = [*leaving]
    return sum(one.lost for one in found), sum(len(one.unit.people) for one in found)


def one_number(lost: int, pods: int) -> int:
    """A cost as one number, in the same order."""
    return (lost << _PODS) + pods


class Known:
    """Units as they were judged, and which a tenant belongs to: what a search of tenants reads."""

    def __init__(self, right: policy.Law) -> None:
        self._right = right
        self._of: dict[str, policy.Judged] = {}

    def put(self, one: policy.Judged) -> holders.Party:
        """The tenants of a unit."""
        for tenant in one.unit.people:
            self._of[tenant.pod.uid] = one
        return one.unit.people

    def judged(self, leaving: Iterable[holders.Tenant]) -> list[policy.Judged]:
        """The units of tenants, each once, by name."""
        found = {one.unit.key: one for one in (self._of[each.pod.uid] for each in leaving)}
        return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))]

    def allows(self, leaving: Sequence[holders.Tenant]) -> bool:
        """Whether they may go together."""
        return self._right.allows(self.judged(leaving))

    def of(self, leaving: Sequence[holders.Tenant]) -> explain_cost.Cost:
        """What is lost with them."""
        return cost_of(self.judged(leaving))

    def look(self, tenant: holders.Tenant) -> tuple[victims.UnitKey, int]:
        """Every unit is like no other."""
        one = self._of[tenant.pod.uid]
        return one.unit.key, one.lost


def in_order(ask: Ask, seated: gang_types.Seated) -> tuple[gang_types.Seat, ...]:
    """Seats in the order of the members."""
    order = {one.pod.uid: at for at, one in enumerate(ask.members)}
    return tuple(sorted(seated.seats, key=lambda seat: order[seat.workload.pod.uid]))


def none(why: Why, found: Iterable[policy.Judged]) -> NoPlan:
    """With the units that were judged."""
    there = [*found]
    counts = collections.Counter(one.barred for one in there)
    barred = {key: counts[key] for key in sorted(k for k in counts if k is not None)}
    return NoPlan(why, len(there), barred)
