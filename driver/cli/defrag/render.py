"""A plan for people, and for programs."""

from typing import Any

from driver.cli import output as out
from driver.cli.defrag import inputs
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import defrag, holders
from driver.scheduling.explain import messages as near_words

NOTHING, PLANNED, REFUSED, NO_PLAN = "fits now", "planned", "refused", "no plan"


def state(plan: defrag.Plan | defrag.NoPlan, *, allow_pending: bool) -> str:
    """`fits now`, `planned`, `refused` (a pod would have to wait) or `no plan`."""
    if isinstance(plan, defrag.NoPlan):
        return NO_PLAN
    if not plan.moves:
        return NOTHING
    return REFUSED if plan.pending_moves and not allow_pending else PLANNED


def code(
    defrag_inputs: inputs.DefragInputs, plan: defrag.Plan | defrag.NoPlan, *, allow_pending: bool
) -> int:
    """The exit code: 0 planned or nothing to do, 1 no plan, 2 none, but not all was seen."""
    if state(plan, allow_pending=allow_pending) in {NOTHING, PLANNED}:
        return 0
    all_seen = plan.is_exhaustive if isinstance(plan, defrag.NoPlan) else plan.is_optimal
    return 1 if all_seen and not defrag_inputs.unreadable else 2


def head(plan: defrag.Plan | defrag.NoPlan, *, allow_pending: bool) -> str:
    """The plan in a sentence or two."""
    if isinstance(plan, defrag.NoPlan):
        return f"No plan: {_of_pods(plan)}. {allocator_messages.unschedulable(plan.unschedulable)}"
    node, devices = plan.placement.node, allocator_messages.devices(plan.placement)
    if not plan.moves:
        return f"Nothing to do: fits now on {node}: {devices}"
    text = f"Evict {_pods(len(plan.moves))}, and {devices} on {node} are free for it"
    if plan.pending_moves:
        text = f"{text}; {_pods(len(plan.pending_moves))} would find no place and wait"
    if state(plan, allow_pending=allow_pending) == REFUSED:
        text = f"Refused without --allow-pending: {text}"
    return text if plan.is_optimal else f"{text}. Not everything was tried: a better plan may exist"


def print_table(
    plan: defrag.Plan | defrag.NoPlan,
    near: inputs.NearestPlan | None,
    *,
    allow_pending: bool,
) -> None:
    """A sentence, and a row a pod."""
    print(head(plan, allow_pending=allow_pending))
    if isinstance(plan, defrag.Plan) and plan.moves:
        print()
        out.show_rows([_row(move) for move in plan.moves], out.Format.TABLE)
    if near is not None:
        print(f"\n{near_words.nearest_fit_message(near.nearest)}")
        for key, why in near.blocked.items():
            if why:
                print(f"  {key} {why}")


def document(
    defrag_inputs: inputs.DefragInputs,
    plan: defrag.Plan | defrag.NoPlan,
    near: inputs.NearestPlan | None,
    *,
    allow_pending: bool,
) -> dict[str, Any]:
    """All of it."""
    built: dict[str, Any] = {
        "state": state(plan, allow_pending=allow_pending),
        "summary": head(plan, allow_pending=allow_pending),
        "pod": str(defrag_inputs.workload.pod.key),
    }
    if isinstance(plan, defrag.Plan):
        built |= {
            "node": plan.placement.node,
            "devices": _devices(plan.placement),
            "evict": [_move(move) for move in plan.moves],
            "waiting": len(plan.pending_moves),
            "best": plan.is_optimal,
        }
    else:
        built |= {"candidates": plan.candidates, "best": plan.is_exhaustive}
    if near is not None:
        built["nearest"] = {
            "node": near.nearest.node,
            "summary": near_words.nearest_fit_message(near.nearest),
            "ever": near.nearest.can_ever_fit,
            "pods": [
                {"pod": str(key), "whyNot": near.blocked.get(key, "")}
                for key in near.nearest.leaving
            ],
        }
    return {**built, "notes": [*defrag_inputs.notes], "unseen": [*defrag_inputs.unreadable]}


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"


def _of_pods(plan: defrag.NoPlan) -> str:
    if not plan.candidates:
        return "no pod may be moved"
    ended = "" if plan.is_exhaustive else "; the search ended before all was tried"
    return f"{_pods(plan.candidates)} may be moved, and no set of them would do{ended}"


def _row(move: defrag.Move) -> dict[str, str]:
    return {
        "pod": move.holder.key,
        "owner": _owner(move.holder),
        "from": _from(move.holder),
        "to": _to(move),
    }


def _to(move: defrag.Move) -> str:
    if isinstance(move.result, allocator_types.Unschedulable):
        return f"waits: {allocator_messages.unschedulable(move.result)}"
    devices = allocator_messages.devices(move.result)
    return f"{move.result.node}: {devices}" if devices else move.result.node


def _from(tenant: holders.DeviceHolder) -> str:
    held = ", ".join(_held(tenant))
    return f"{tenant.node}: {held}" if held else tenant.node


def _held(tenant: holders.DeviceHolder) -> list[str]:
    return [result.device.device for lease in tenant.claims for result in lease.results]


def _owner(tenant: holders.DeviceHolder) -> str:
    owner = tenant.pod.owner
    return f"{owner.kind} {owner.name}" if owner else ""


def _devices(placement: allocator_types.Placement) -> list[str]:
    return [pick.device.device for pick in placement.assignments]


def _move(move: defrag.Move) -> dict[str, Any]:
    built: dict[str, Any] = {
        "pod": str(move.holder.key),
        "owner": _owner(move.holder),
        "from": {"node": move.holder.node, "devices": _held(move.holder)},
    }
    if isinstance(move.result, allocator_types.Unschedulable):
        return {**built, "to": None, "why": allocator_messages.unschedulable(move.result)}
    return {**built, "to": {"node": move.result.node, "devices": _devices(move.result)}}
