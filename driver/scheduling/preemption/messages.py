"""Messages of preemption plans, for events (D19). Pure."""

from collections.abc import Iterator, Sequence

from driver import ids
from driver.resources import queues
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import policy
from driver.scheduling.preemption import types as preemption_types

_MAX_NAMED = 4
_HOUR = 3600


def preemptor_message(plan: preemption_types.Plan, eviction_policy: policy.PreemptionPolicy) -> str:
    """`Evicts 2 pods of queue batch on node-3, 1.5 GPU-hours lost: team/a, team/b`."""
    count = len(plan.pods)
    nodes = sorted({entry.node for candidate in plan.victims for entry in candidate.victim.pods})
    queue_names = sorted(
        {
            name
            for entry in plan.victims
            for name in eviction_policy.victim_queues(entry.victim)
            if name
        }
    )
    of_queues = (
        f" of {'queue' if len(queue_names) == 1 else 'queues'} {_listed(queue_names)}"
        if queue_names
        else ""
    )
    pods = f"{count} pod{'' if count == 1 else 's'}"
    lost = _lost_hours(plan)
    return f"Evicts {pods}{of_queues} on {_listed(nodes)}, {lost} lost: {_listed(plan.pods)}"


def victim_message(
    plan: preemption_types.Plan,
    candidate: policy.VictimEligibility,
    eviction_policy: policy.PreemptionPolicy,
    name: str,
) -> str:
    """`Evicted for pod team/x (priority 1000 > 0), which needs gpu-0000-18-00-0 on node-3`.

    `name` is the preemptor: `pod team/x`, `gang team/g`.
    """
    location = "; ".join(_needed_devices(plan.members, candidate))
    needs = f", which needs {location}" if location else ""
    with_all = (
        f" with all of {candidate.victim.description}" if len(candidate.victim.pods) > 1 else ""
    )
    return f"Evicted{with_all} for {name} ({eviction_policy.grounds(candidate)}){needs}"


def no_plan_message(no_plan: preemption_types.NoPlan) -> str:
    """`Nobody can be evicted for it: of 12 pods and gangs 8 PriorityNotLower, 4 NoController`."""
    match no_plan.reason:
        case preemption_types.NoPlanReason.NEVER:
            return "No pod is evicted for it: its preemptionPolicy is Never"
        case preemption_types.NoPlanReason.BUDGET_EXCEEDED:
            text = "The victim search exceeded its step budget"
        case preemption_types.NoPlanReason.NOT_HELPFUL:
            text = "Evicting every eligible pod would not help"
    counts = ", ".join(f"{count} {reason}" for reason, count in no_plan.ineligible.items())
    return f"{text}: of {no_plan.victim_count} pods and gangs {counts}" if counts else text


def _needed_devices(
    members: Sequence[gang_types.MemberPlacement], candidate: policy.VictimEligibility
) -> Iterator[str]:
    """Yield the members' devices on the victim's nodes: its own ones, if they get such."""
    has = {
        (holder.node, result.device)
        for holder in candidate.victim.pods
        for held_claim in holder.claims
        for result in held_claim.results
    }
    for node in sorted({holder.node for holder in candidate.victim.pods}):
        picks = [
            pick
            for member in members
            if member.placement.node == node
            for pick in member.placement.assignments
        ]
        same = [pick for pick in picks if (node, pick.device) in has] or picks
        if same:
            yield f"{_listed(sorted({pick.device.device for pick in same}))} on {node}"


def _lost_hours(plan: preemption_types.Plan) -> str:
    hours = sum(candidate.lost for candidate in plan.victims) / queues.THOUSAND / _HOUR
    return f"{hours:.1f} GPU-hours"


def _listed(items: Sequence[str | ids.Key]) -> str:
    rest = len(items) - _MAX_NAMED
    return ", ".join([*items[:_MAX_NAMED], *([f"{rest} more"] if rest > 0 else [])])
