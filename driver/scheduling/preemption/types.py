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

_VictimKey = victims.VictimKey
_PODS = 32
"""Bits for a number of pods."""


@dataclass(frozen=True, slots=True)
class PreemptionRequest:
    """A pod, or the pods of a gang, that find no place in a view.

    `refused`: that they find none is known, so that it is not tried again.
    """

    view: snapshot.Snapshot
    members: Sequence[allocator_types.Workload]
    allocator_settings: settings.Settings
    topology_request: topology.Topology = field(default_factory=topology.Topology)
    is_unschedulable: bool = False

    @property
    def single(self) -> allocator_types.Workload | None:
        """The one pod, where it is one and nothing is asked of where."""
        return (
            self.members[0]
            if len(self.members) == 1 and not self.topology_request.required_depth
            else None
        )

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

    victims: tuple[policy.VictimEligibility, ...]
    members: tuple[gang_types.MemberPlacement, ...]
    is_optimal: bool = True

    @property
    def lost_s(self) -> float:
        """The GPU-seconds that are lost."""
        return sum(one.lost for one in self.victims) / queues.THOUSAND

    @property
    def pods(self) -> tuple[ids.Key, ...]:
        """The pods to evict."""
        return tuple(sorted(one.key for found in self.victims for one in found.victim.pods))

    @property
    def cost(self) -> explain_cost.Cost:
        """Thousandths of a GPU times seconds, then pods: less is better."""
        return plan_cost(self.victims)


class NoPlanReason(enum.Enum):
    """Why there is no plan."""

    NEVER = "never"
    """Its preemptionPolicy is Never."""
    NOT_HELPFUL = "in vain"
    """Even without all who may go it would not fit; or not all that would have to may go."""
    BUDGET_EXCEEDED = "spent"
    """The steps ended before one was found."""


@dataclass(frozen=True, slots=True)
class NoPlan:
    """None. `units` is how many there are, `barred` how many of them may not go and why."""

    reason: NoPlanReason
    victim_count: int = 0
    ineligible: Mapping[reasons.Reason, int] = field(default_factory=dict)


def plan_cost(leaving: Iterable[policy.VictimEligibility]) -> tuple[int, int]:
    """What it costs that these go."""
    found = [*leaving]
    return sum(one.lost for one in found), sum(len(one.victim.pods) for one in found)


def cost_number(lost: int, pods: int) -> int:
    """A cost as one number, in the same order."""
    return (lost << _PODS) + pods


class EligibilityIndex:
    """Units as they were judged, and which a tenant belongs to: what a search of tenants reads."""

    def __init__(self, right: policy.PreemptionPolicy) -> None:
        self._policy = right
        self._by_uid: dict[str, policy.VictimEligibility] = {}

    def add(self, one: policy.VictimEligibility) -> holders.HolderGroup:
        """The tenants of a unit."""
        for tenant in one.victim.pods:
            self._by_uid[tenant.pod.uid] = one
        return one.victim.pods

    def victims(self, leaving: Iterable[holders.DeviceHolder]) -> list[policy.VictimEligibility]:
        """The units of tenants, each once, by name."""
        found = {one.victim.key: one for one in (self._by_uid[each.pod.uid] for each in leaving)}
        return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))]

    def may_evict(self, leaving: Sequence[holders.DeviceHolder]) -> bool:
        """Whether they may go together."""
        return self._policy.may_evict(self.victims(leaving))

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> explain_cost.Cost:
        """What is lost with them."""
        return plan_cost(self.victims(leaving))

    def signature(self, tenant: holders.DeviceHolder) -> tuple[_VictimKey, int]:
        """Every unit is like no other."""
        one = self._by_uid[tenant.pod.uid]
        return one.victim.key, one.lost


def member_order(
    ask: PreemptionRequest, seated: gang_types.GangPlacement
) -> tuple[gang_types.MemberPlacement, ...]:
    """Seats in the order of the members."""
    order = {one.pod.uid: at for at, one in enumerate(ask.members)}
    return tuple(sorted(seated.members, key=lambda seat: order[seat.workload.pod.uid]))


def no_plan(why: NoPlanReason, found: Iterable[policy.VictimEligibility]) -> NoPlan:
    """With the units that were judged."""
    there = [*found]
    counts = collections.Counter(one.ineligible for one in there)
    barred = {key: counts[key] for key in sorted(k for k in counts if k is not None)}
    return NoPlan(why, len(there), barred)
