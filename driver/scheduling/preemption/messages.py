"""A plan in words, for events (D19). Pure."""

from collections.abc import Iterator, Sequence

from driver import ids
from driver.resources import queues
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import policy
from driver.scheduling.preemption import types as preemption_types

_MOST_NAMED = 4
_HOUR = 3600


def preemptor(plan: preemption_types.Plan, right: policy.Law) -> str:
    """`Evicts 2 pods of queue batch on node-3, 1.5 GPU-hours lost: team/a, team/b`."""
    count = len(plan.pods)
    nodes = sorted({one.node for found in plan.leaving for one in found.unit.people})
    leaves = sorted({name for one in plan.leaving for name in right.leaves(one.unit) if name})
    of = f" of {'queue' if len(leaves) == 1 else 'queues'} {_listed(leaves)}" if leaves else ""
    pods = f"{count} pod{'' if count == 1 else 's'}"
    return f"Evicts {pods}{of} on {_listed(nodes)}, {_lost(plan)} lost: {_listed(plan.pods)}"


def victim(plan: preemption_types.Plan, one: policy.Judged, right: policy.Law, name: str) -> str:
    """`Evicted for pod team/x (priority 1000 > 0), which needs gpu-0000-18-00-0 on node-3`.

    `name` is who it is evicted for: `pod team/x`, `gang team/g`.
    """
    where = "; ".join(_needs(plan.seats, one))
    needs = f", which needs {where}" if where else ""
    with_all = f" with all of {one.unit.words}" if len(one.unit.people) > 1 else ""
    return f"Evicted{with_all} for {name} ({right.words(one)}){needs}"


def no_plan(found: preemption_types.NoPlan) -> str:
    """`Nobody can be evicted for it: of 12 pods and gangs 8 PriorityNotLower, 4 NotMadeAgain`."""
    match found.why:
        case preemption_types.Why.NEVER:
            return "Nobody is evicted for it: its preemptionPolicy is Never"
        case preemption_types.Why.SPENT:
            said = "Whom to evict for it was not found in as many steps as are taken"
        case preemption_types.Why.IN_VAIN:
            said = "Evicting all who may go would not make room for it"
    told = ", ".join(f"{count} {reason}" for reason, count in found.barred.items())
    return f"{said}: of {found.units} pods and gangs {told}" if told else said


def _needs(seats: Sequence[gang_types.Seat], one: policy.Judged) -> Iterator[str]:
    """What the members get on the nodes of a unit: of its own devices, where they get such."""
    has = {
        (tenant.node, found.device)
        for tenant in one.unit.people
        for lease in tenant.leases
        for found in lease.results
    }
    for node in sorted({tenant.node for tenant in one.unit.people}):
        picks = [
            pick
            for seat in seats
            if seat.placement.node == node
            for pick in seat.placement.assignments
        ]
        same = [pick for pick in picks if (node, pick.device) in has] or picks
        if same:
            yield f"{_listed(sorted({pick.device.device for pick in same}))} on {node}"


def _lost(plan: preemption_types.Plan) -> str:
    hours = sum(one.lost for one in plan.leaving) / queues.THOUSAND / _HOUR
    return f"{hours:.1f} GPU-hours"


def _listed(found: Sequence[str | ids.Key]) -> str:
    rest = len(found) - _MOST_NAMED
    return ", ".join([*found[:_MOST_NAMED], *([f"{rest} more"] if rest > 0 else [])])
