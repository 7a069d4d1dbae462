"""Request for a preemption plan, and its results. Pure."""

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
    """An unschedulable pod, or the pods of a gang.

    `is_unschedulable`: placement failed already, so that it is not tried again.
    """

    view: snapshot.Snapshot
    members: Sequence[allocator_types.Workload]
    allocator_settings: settings.Settings
    topology_request: topology.Topology = field(default_factory=topology.Topology)
    is_unschedulable: bool = False

    @property
    def single(self) -> allocator_types.Workload | None:
        """The only pod, if there is one without topology requirement."""
        return (
            self.members[0]
            if len(self.members) == 1 and not self.topology_request.required_depth
            else None
        )

    @property
    def uids(self) -> frozenset[ids.PodUid]:
        """UIDs of its pods."""
        return frozenset(member.pod.uid for member in self.members)


@dataclass(frozen=True, slots=True)
class Plan:
    """Victims, and the placement of each member without them; no victim may stay.

    `members` are in the order of the request, in the snapshot without the victims, which are sorted
    by name. `is_optimal`: nothing eligible costs less; otherwise the steps ended before that was
    known.
    """

    victims: tuple[policy.VictimEligibility, ...]
    members: tuple[gang_types.MemberPlacement, ...]
    is_optimal: bool = True

    @property
    def lost_s(self) -> float:
        """GPU-seconds lost."""
        return sum(candidate.lost for candidate in self.victims) / queues.THOUSAND

    @property
    def pods(self) -> tuple[ids.Key, ...]:
        """The pods to evict."""
        return tuple(
            sorted(holder.key for candidate in self.victims for holder in candidate.victim.pods)
        )

    @property
    def cost(self) -> explain_cost.Cost:
        """Thousandths of a GPU times seconds, then pods: less is better."""
        return plan_cost(self.victims)


class NoPlanReason(enum.Enum):
    """Reason for a missing plan."""

    NEVER = "never"
    """Its preemptionPolicy is Never."""
    NOT_HELPFUL = "in vain"
    """It would not fit even without all eligible victims."""
    BUDGET_EXCEEDED = "spent"
    """The steps ended before one was found."""


@dataclass(frozen=True, slots=True)
class NoPlan:
    """No plan. `victim_count` counts all victims, `ineligible` the ineligible ones by reason."""

    reason: NoPlanReason
    victim_count: int = 0
    ineligible: Mapping[reasons.Reason, int] = field(default_factory=dict)


def plan_cost(evicted: Iterable[policy.VictimEligibility]) -> tuple[int, int]:
    """Return the cost of evicting these."""
    candidates = [*evicted]
    return sum(candidate.lost for candidate in candidates), sum(
        len(candidate.victim.pods) for candidate in candidates
    )


def cost_number(lost: int, pods: int) -> int:
    """Return a cost as one number, in the same order."""
    return (lost << _PODS) + pods


class EligibilityIndex:
    """Evaluated victims, and the victim of each holder, as searches of holders read them."""

    def __init__(self, eviction_policy: policy.PreemptionPolicy) -> None:
        self._policy = eviction_policy
        self._by_uid: dict[str, policy.VictimEligibility] = {}

    def add(self, candidate: policy.VictimEligibility) -> holders.HolderGroup:
        """Add a victim; return its holders."""
        for holder in candidate.victim.pods:
            self._by_uid[holder.pod.uid] = candidate
        return candidate.victim.pods

    def victims(self, leaving: Iterable[holders.DeviceHolder]) -> list[policy.VictimEligibility]:
        """Return the victims of holders, each once, by name."""
        by_key = {
            candidate.victim.key: candidate
            for candidate in (self._by_uid[each.pod.uid] for each in leaving)
        }
        return [by_key[key] for key in sorted(by_key, key=lambda key: (key[1], key[0]))]

    def may_evict(self, leaving: Sequence[holders.DeviceHolder]) -> bool:
        """Return whether they may be evicted together."""
        return self._policy.may_evict(self.victims(leaving))

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> explain_cost.Cost:
        """Return the cost of evicting them."""
        return plan_cost(self.victims(leaving))

    def signature(self, holder: holders.DeviceHolder) -> tuple[_VictimKey, int]:
        """Return a signature that no other victim shares."""
        candidate = self._by_uid[holder.pod.uid]
        return candidate.victim.key, candidate.lost


def member_order(
    request: PreemptionRequest, placement: gang_types.GangPlacement
) -> tuple[gang_types.MemberPlacement, ...]:
    """Return placements in the order of the request's members."""
    order = {member.pod.uid: index for index, member in enumerate(request.members)}
    return tuple(sorted(placement.members, key=lambda placed: order[placed.workload.pod.uid]))


def no_plan(reason: NoPlanReason, evaluated: Iterable[policy.VictimEligibility]) -> NoPlan:
    """Return the result with the counts of the evaluated victims."""
    candidates = [*evaluated]
    counts = collections.Counter(candidate.ineligible for candidate in candidates)
    barred = {key: counts[key] for key in sorted(k for k in counts if k is not None)}
    return NoPlan(reason, len(candidates), barred)
