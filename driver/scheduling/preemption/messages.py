"""A plan in words, for events (D19). Pure."""

from collections.abc import Iterator, Sequence

from driver import ids
from driver.resources import queues
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import policy
from driver.scheduling.preemption import types as preemption_types

_MAX_NAMED = 4
_HOUR = 3600


def preemptor_message(plan: preemption_types.Plan, right: policy.PreemptionPolicy) -> str:
    """`Evicts 2 pods of queue batch on node-3, 1.5 GPU-hours lost: team/a, team/b`."""
    count = len(plan.pods)
    nodes = sorted({one.node for found in plan.victims for one in found.victim.pods})
    leaves = sorted(
        {name for one in plan.victims for name in right.victim_queues(one.victim) if name}
    )
    of = f" of {'queue' if len(leaves) == 1 else 'queues'} {_listed(leaves)}" if leaves else ""
    pods = f"{count} pod{'' if count == 1 else 's'}"
    return f"Evicts {pods}{of} on {_listed(nodes)}, {_lost_hours(plan)} lost: {_listed(plan.pods)}"


def victim_message(
    plan: preemption_types.Plan,
    one: policy.VictimEligibility,
    right: policy.PreemptionPolicy,
    name: str,
) -> str:
    """`Evicted for pod team/x (priority 1000 > 0), which needs gpu-0000-18-00-0 on node-3`.

    `name` is who it is evicted for: `pod team/x`, `gang team/g`.
    """
    where = "; ".join(_needed_devices(plan.members, one))
    needs = f", which needs {where}" if where else ""
    with_all = f" with all of {one.victim.description}" if len(one.victim.pods) > 1 else ""
    return f"Evicted{with_all} for {name} ({right.grounds(one)}){needs}"


def no_plan_message(found: preemption_types.NoPlan) -> str:
    """`Nobody can be evicted for it: of 12 pods and gangs 8 PriorityNotLower, 4 NotMadeAgain`."""
    match found.reason:
        case preemption_types.NoPlanReason.NEVER:
            return "Nobody is evicted for it: its preemptionPolicy is Never"
        case preemption_types.NoPlanReason.BUDGET_EXCEEDED:
            said = "Whom to evict for it was not found in as many steps as are taken"
        case preemption_types.NoPlanReason.NOT_HELPFUL:
            said = "Evicting all who may go would not make room for it"
    told = ", ".join(f"{count} {reason}" for reason, count in found.ineligible.items())
    return f"{said}: of {found.victim_count} pods and gangs {told}" if told else said


def _needed_devices(
    seats: Sequence[gang_types.MemberPlacement], one: policy.VictimEligibility
) -> Iterator[str]:
    """What the members get on the nodes of a unit: of its own devices, where they get such."""
    has = {
        (tenant.node, found.device)
        for tenant in one.victim.pods
        for lease in tenant.claims
        for found in lease.results
    }
    for node in sorted({tenant.node for tenant in one.victim.pods}):
        picks = [
            pick
            for seat in seats
            if seat.placement.node == node
            for pick in seat.placement.assignments
        ]
        same = [pick for pick in picks if (node, pick.device) in has] or picks
        if same:
            yield f"{_listed(sorted({pick.device.device for pick in same}))} on {node}"


def _lost_hours(plan: preemption_types.Plan) -> str:
    hours = sum(one.lost for one in plan.victims) / queues.THOUSAND / _HOUR
    return f"{hours:.1f} GPU-hours"


def _listed(found: Sequence[str | ids.Key]) -> str:
    rest = len(found) - _MAX_NAMED
    return ", ".join([*found[:_MAX_NAMED], *([f"{rest} more"] if rest > 0 else [])])
