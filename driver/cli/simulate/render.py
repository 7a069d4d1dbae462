"""The answer of `ration simulate`: for people a table and a sum, for programs everything."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from driver.cli import output as out
from driver.cli.simulation import replay, scheduler
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explanation
from driver.scheduling.queues import gpu_usage

MOST_ROWS = 200
"""Pods of a table; more are summed up by what became of them."""
_MOMENTS = 12
_HOUR_S = 3600.0
_WAITS = "waits"
_LEFT_OUT = "left out"
_PLACED = "placed"
Row = dict[str, str]


def state(fate: replay.Fate) -> str:
    """`placed`, `waits` or `left out`."""
    if isinstance(fate.answer, scheduler.Bound):
        return _PLACED
    left_out = isinstance(fate.answer, scheduler.Aside) and not fate.answer.matters
    return _LEFT_OUT if left_out else _WAITS


def _counts(report: replay.Report) -> Counter[str]:
    return Counter(state(one) for one in report.fates)


def is_all_placed(report: replay.Report) -> bool:
    """Whether every pod that asks for devices has a place."""
    return not any(state(one) == _WAITS for one in report.fates)


def why(fate: replay.Fate, lacking: Mapping[str, str]) -> str:
    """The controller's words."""
    match fate.answer:
        case scheduler.Bound() as bound:
            return _of_bound(bound)
        case allocator_types.Unschedulable() as no:
            return allocator_messages.unschedulable(no)
        case scheduler.Aside() as aside:
            return lacking.get(fate.task.pod.key, aside.why)
        case None:
            return ""


def _of_bound(bound: scheduler.Bound) -> str:
    return (
        f"{allocator_messages.placement(bound.placement)}{_rest(bound)}"
        if bound.made
        else _briefly(bound)
    )


def _briefly(bound: scheduler.Bound) -> str:
    """Without node and devices, which stand beside it."""
    if bound.pod.claims and not bound.made:
        return f"Uses what its claims have already{_rest(bound)}"
    return f"{bound.placement.explanation}{_rest(bound)}"


def _rest(bound: scheduler.Bound) -> str:
    if not bound.others:
        return ""
    return f"; kube-scheduler has yet to allocate {', '.join(bound.others)}"


# For people.


def print_table(
    report: replay.Report, lacking: Mapping[str, str], notes: Sequence[str], *, timeline: bool
) -> None:
    """A table, with a timeline some moments of it, the sum, and notes."""
    out.show(table(report, lacking), out.Format.TABLE)
    if timeline:
        print()
        out.show(course(report), out.Format.TABLE)
    print()
    print(total(report, timeline=timeline))
    for one in notes:
        print(f"note: {one}")


def table(report: replay.Report, lacking: Mapping[str, str]) -> list[Row]:
    """A row a pod; of many, a row for each thing that became of them."""
    fates = report.fates
    return _summed(fates, lacking) if len(fates) > MOST_ROWS else [*_rows(fates, lacking)]


def _rows(fates: Sequence[replay.Fate], lacking: Mapping[str, str]) -> Iterator[Row]:
    for fate in fates:
        bound = fate.answer if isinstance(fate.answer, scheduler.Bound) else None
        yield {
            "pod": fate.task.pod.key,
            "state": state(fate),
            "node": bound.placement.node if bound else "-",
            "devices": allocator_messages.devices(bound.placement) if bound and bound.made else "-",
            "why": _briefly(bound) if bound else why(fate, lacking),
        }


def _summed(fates: Sequence[replay.Fate], lacking: Mapping[str, str]) -> list[Row]:
    counts: dict[tuple[str, str], int] = {}
    for fate in fates:
        told = _kind(fate, lacking)
        counts[state(fate), told] = counts.get((state(fate), told), 0) + 1
    order = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return [{"pods": str(n), "state": what, "why": told} for (what, told), n in order]


def _kind(fate: replay.Fate, lacking: Mapping[str, str]) -> str:
    """Why, without what differs from pod to pod."""
    match fate.answer:
        case allocator_types.Unschedulable(blocker=blocker) if blocker is not None:
            return str(blocker)
        case allocator_types.Unschedulable(rejections=nodes):
            reasons: dict[str, int] = {}
            for refusal, names in nodes.items():
                for one in _reasons(refusal):
                    reasons[one] = reasons.get(one, 0) + len(names)
            found = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
            return ", ".join(name for name, _ in found[:3]) or "no node has devices"
        case scheduler.Aside():
            return why(fate, lacking)
        case _:
            return ""


def _reasons(refusal: allocator_types.NodeRejection) -> list[str]:
    if refusal.node_reason is not None:
        return [refusal.node_reason]
    return [str(reason) for reason, _ in refusal.device_reasons[:1]] or [
        "devices do not fit together"
    ]


def course(report: replay.Report) -> list[Row]:
    """Some moments of a timeline, evenly over the time it took."""
    found = report.course
    if not found:
        return []
    first, last = found[0].at, found[-1].at
    rows: list[Row] = []
    place = 0
    for number in range(_MOMENTS + 1):
        at = first + (last - first) * number / _MOMENTS
        while place + 1 < len(found) and found[place + 1].at <= at:
            place += 1
        one = found[place]
        rows.append(
            {
                "hours": f"{(at - first) / _HOUR_S:.1f}",
                "gpus in use": _share(one.used, report.capacity),
                "running": str(one.running),
                "waiting": str(one.waiting),
            }
        )
    return rows


def total(report: replay.Report, *, timeline: bool) -> str:
    """`3 of 4 pods placed, 1 waits; GPUs in use: 5 of 16 (31.2 %), 3 before`."""
    counts = _counts(report)
    found = f"{counts[_PLACED]} of {_pods(len(report.fates))} placed"
    if counts[_WAITS]:
        found += f", {counts[_WAITS]} {'waits' if counts[_WAITS] == 1 else 'wait'}"
    if counts[_LEFT_OUT]:
        found += f", {counts[_LEFT_OUT]} left out"
    if timeline:
        return f"{found}; {_timed(report)}"
    before = f", {_gpus(report.before)} before" if report.before else ""
    return f"{found}; GPUs in use: {_share(report.used, report.capacity)}{before}"


def _timed(report: replay.Report) -> str:
    waited = [one.waited for one in report.fates if one.waited]
    mean = sum(waited) / len(waited) / _HOUR_S if waited else 0.0
    most = max(waited, default=0.0) / _HOUR_S
    return (
        f"{_pods(len(waited))} had to wait, {mean:.2f} h on average, {most:.2f} h at most\n"
        f"GPUs in use: {_share(round(report.mean), report.capacity)} on average, "
        f"{_share(report.most, report.capacity)} at most"
    )


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _gpus(thousandths: int) -> str:
    return f"{thousandths / gpu_usage.FULL:g}"


def _share(used: int, capacity: int) -> str:
    return f"{_gpus(used)} of {_gpus(capacity)} ({_percent(used, capacity):.2f} %)"


def _percent(used: float, capacity: int) -> float:
    return 100 * used / capacity if capacity else 0.0


# For programs.


def document(
    report: replay.Report, lacking: Mapping[str, str], notes: Sequence[str], *, timeline: bool
) -> dict[str, Any]:
    """All of it: `gpus` in GPUs, times in seconds."""
    counts = _counts(report)
    made: dict[str, Any] = {
        "pods": [_pod(one, lacking, timeline=timeline) for one in report.fates],
        "total": {
            "pods": len(report.fates),
            "placed": counts[_PLACED],
            "waiting": counts[_WAITS],
            "leftOut": counts[_LEFT_OUT],
            "gpus": report.capacity / gpu_usage.FULL,
            "gpusInUseBefore": report.before / gpu_usage.FULL,
            "gpusInUse": report.used / gpu_usage.FULL,
            "gpusInUsePercent": round(_percent(report.used, report.capacity), 2),
        },
        "notes": [*notes],
    }
    if timeline:
        made["total"] |= {
            "gpusInUseMean": report.mean / gpu_usage.FULL,
            "gpusInUseMost": report.most / gpu_usage.FULL,
        }
        made["course"] = [
            {
                "at": one.at,
                "gpusInUse": one.used / gpu_usage.FULL,
                "percent": round(_percent(one.used, report.capacity), 2),
                "running": one.running,
                "waiting": one.waiting,
            }
            for one in report.course
        ]
    return made


def _pod(fate: replay.Fate, lacking: Mapping[str, str], *, timeline: bool) -> dict[str, Any]:
    pod = fate.task.pod
    bound = fate.answer if isinstance(fate.answer, scheduler.Bound) else None
    made: dict[str, Any] = {
        "namespace": pod.namespace,
        "name": pod.name,
        "state": state(fate),
        "node": bound.placement.node if bound else None,
        "devices": [*_devices(bound)] if bound else [],
        "why": why(fate, lacking),
        **_explained(fate),
    }
    if timeline:
        made |= {"arrived": fate.task.at, "placed": fate.placed, "left": fate.left}
        made["waited"] = fate.waited
    return made


def _explained(fate: replay.Fate) -> dict[str, Any]:
    """Everything that the controller knows of why."""
    match fate.answer:
        case scheduler.Bound(placement=placement, made=made) if made:
            return {"considered": explanation.placement_document(placement)["considered"]}
        case allocator_types.Unschedulable() as no:
            return explanation.unschedulable_document(no)
        case _:
            return {}


def _devices(bound: scheduler.Bound) -> Iterator[dict[str, Any]]:
    for claim in bound.made:
        for result in claim.allocation.results if claim.allocation else ():
            yield {
                "claim": claim.name,
                "request": result.request,
                "driver": result.device.driver,
                "pool": result.device.pool,
                "device": result.device.device,
                "consumed": {name: amount.text for name, amount in result.consumed.items()},
            }
