"""The answer of `ration simulate`: for people a table and a sum, for programs everything."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from driver.cli import output as out
from driver.cli.simulation import replay, scheduler
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer
from driver.scheduling.queues import gpu_usage

MOST_ROWS = 200
"""Pods of a table; more are summed up by what became of them."""
_MOMENTS = 12
_HOUR_S = 3600.0
_WAITS = "waits"
_LEFT_OUT = "left out"
_PLACED = "placed"
Row = dict[str, str]


def fate_state(fate: replay.TaskFate) -> str:
    """`placed`, `waits` or `left out`."""
    if isinstance(fate.answer, scheduler.BoundPod):
        return _PLACED
    left_out = isinstance(fate.answer, scheduler.Skipped) and not fate.answer.matters
    return _LEFT_OUT if left_out else _WAITS


def _counts(report: replay.Report) -> Counter[str]:
    return Counter(fate_state(task_fate) for task_fate in report.fates)


def is_all_placed(report: replay.Report) -> bool:
    """Return whether every pod that requests devices is placed."""
    return not any(fate_state(task_fate) == _WAITS for task_fate in report.fates)


def describe_fate(fate: replay.TaskFate, lacking: Mapping[str, str]) -> str:
    """The controller's words."""
    match fate.answer:
        case scheduler.BoundPod() as bound:
            return _of_bound(bound)
        case allocator_types.Unschedulable() as no:
            return allocator_messages.unschedulable(no)
        case scheduler.Skipped() as aside:
            return lacking.get(fate.task.pod.key, aside.why)
        case None:
            return ""


def _of_bound(bound: scheduler.BoundPod) -> str:
    return (
        f"{allocator_messages.placement(bound.placement)}{_rest(bound)}"
        if bound.allocations
        else _briefly(bound)
    )


def _briefly(bound: scheduler.BoundPod) -> str:
    """Without node and devices, which stand beside it."""
    if bound.pod.claims and not bound.allocations:
        return f"Uses what its claims have already{_rest(bound)}"
    return f"{bound.placement.explanation}{_rest(bound)}"


def _rest(bound: scheduler.BoundPod) -> str:
    if not bound.others:
        return ""
    return f"; kube-scheduler has yet to allocate {', '.join(bound.others)}"


# For people.


def print_table(
    report: replay.Report, lacking: Mapping[str, str], notes: Sequence[str], *, timeline: bool
) -> None:
    """A table, with a timeline some moments of it, the sum, and notes."""
    out.show_rows(table(report, lacking), out.Format.TABLE)
    if timeline:
        print()
        out.show_rows(course_table(report), out.Format.TABLE)
    print()
    print(total_line(report, timeline=timeline))
    for note in notes:
        print(f"note: {note}")


def table(report: replay.Report, lacking: Mapping[str, str]) -> list[Row]:
    """A row a pod; of many, a row for each thing that became of them."""
    fates = report.fates
    return _summed(fates, lacking) if len(fates) > MOST_ROWS else [*_rows(fates, lacking)]


def _rows(fates: Sequence[replay.TaskFate], lacking: Mapping[str, str]) -> Iterator[Row]:
    for fate in fates:
        bound = fate.answer if isinstance(fate.answer, scheduler.BoundPod) else None
        yield {
            "pod": fate.task.pod.key,
            "state": fate_state(fate),
            "node": bound.placement.node if bound else "-",
            "devices": allocator_messages.devices(bound.placement)
            if bound and bound.allocations
            else "-",
            "why": _briefly(bound) if bound else describe_fate(fate, lacking),
        }


def _summed(fates: Sequence[replay.TaskFate], lacking: Mapping[str, str]) -> list[Row]:
    counts: dict[tuple[str, str], int] = {}
    for fate in fates:
        report_progress = _kind(fate, lacking)
        counts[fate_state(fate), report_progress] = (
            counts.get((fate_state(fate), report_progress), 0) + 1
        )
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        {"pods": str(n), "state": subject, "why": report_progress}
        for (subject, report_progress), n in order
    ]


def _kind(fate: replay.TaskFate, lacking: Mapping[str, str]) -> str:
    """Return the cause without what differs from pod to pod."""
    match fate.answer:
        case allocator_types.Unschedulable(blocker=blocker) if blocker is not None:
            return str(blocker)
        case allocator_types.Unschedulable(rejections=nodes):
            reasons: dict[str, int] = {}
            for refusal, names in nodes.items():
                for reason in _reasons(refusal):
                    reasons[reason] = reasons.get(reason, 0) + len(names)
            result = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
            return ", ".join(name for name, _ in result[:3]) or "no node has devices"
        case scheduler.Skipped():
            return describe_fate(fate, lacking)
        case _:
            return ""


def _reasons(refusal: allocator_types.NodeRejection) -> list[str]:
    if refusal.node_reason is not None:
        return [refusal.node_reason]
    return [str(reason) for reason, _ in refusal.device_reasons[:1]] or [
        "devices do not fit together"
    ]


def course_table(report: replay.Report) -> list[Row]:
    """Some moments of a timeline, evenly over the time it took."""
    usage_samples = report.course
    if not usage_samples:
        return []
    first, last = usage_samples[0].at, usage_samples[-1].at
    rows: list[Row] = []
    index = 0
    for number in range(_MOMENTS + 1):
        time = first + (last - first) * number / _MOMENTS
        while index + 1 < len(usage_samples) and usage_samples[index + 1].at <= time:
            index += 1
        usage_sample = usage_samples[index]
        rows.append(
            {
                "hours": f"{(time - first) / _HOUR_S:.1f}",
                "gpus in use": _share(usage_sample.used, report.capacity),
                "running": str(usage_sample.running),
                "waiting": str(usage_sample.waiting),
            }
        )
    return rows


def total_line(report: replay.Report, *, timeline: bool) -> str:
    """`3 of 4 pods placed, 1 waits; GPUs in use: 5 of 16 (31.2 %), 3 before`."""
    counts = _counts(report)
    result = f"{counts[_PLACED]} of {_pods(len(report.fates))} placed"
    if counts[_WAITS]:
        result += f", {counts[_WAITS]} {'waits' if counts[_WAITS] == 1 else 'wait'}"
    if counts[_LEFT_OUT]:
        result += f", {counts[_LEFT_OUT]} left out"
    if timeline:
        return f"{result}; {_timed(report)}"
    previous = f", {_gpus(report.before)} before" if report.before else ""
    return f"{result}; GPUs in use: {_share(report.used, report.capacity)}{previous}"


def _timed(report: replay.Report) -> str:
    waited = [task_fate.waited for task_fate in report.fates if task_fate.waited]
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
    built: dict[str, Any] = {
        "pods": [_pod(fate, lacking, timeline=timeline) for fate in report.fates],
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
        built["total"] |= {
            "gpusInUseMean": report.mean / gpu_usage.FULL,
            "gpusInUseMost": report.most / gpu_usage.FULL,
        }
        built["course"] = [
            {
                "at": fate.at,
                "gpusInUse": fate.used / gpu_usage.FULL,
                "percent": round(_percent(fate.used, report.capacity), 2),
                "running": fate.running,
                "waiting": fate.waiting,
            }
            for fate in report.course
        ]
    return built


def _pod(fate: replay.TaskFate, lacking: Mapping[str, str], *, timeline: bool) -> dict[str, Any]:
    pod = fate.task.pod
    bound = fate.answer if isinstance(fate.answer, scheduler.BoundPod) else None
    built: dict[str, Any] = {
        "namespace": pod.namespace,
        "name": pod.name,
        "state": fate_state(fate),
        "node": bound.placement.node if bound else None,
        "devices": [*_devices(bound)] if bound else [],
        "why": describe_fate(fate, lacking),
        **_explained(fate),
    }
    if timeline:
        built |= {"arrived": fate.task.at, "placed": fate.placed, "left": fate.departed}
        built["waited"] = fate.waited
    return built


def _explained(fate: replay.TaskFate) -> dict[str, Any]:
    """Everything that the controller knows of why."""
    match fate.answer:
        case scheduler.BoundPod(placement=placement, allocations=made) if made:
            return {"considered": explainer.placement_document(placement)["considered"]}
        case allocator_types.Unschedulable() as no:
            return explainer.unschedulable_document(no)
        case _:
            return {}


def _devices(bound: scheduler.BoundPod) -> Iterator[dict[str, Any]]:
    for claim in bound.allocations:
        for result in claim.allocation.results if claim.allocation else ():
            yield {
                "claim": claim.name,
                "request": result.request,
                "driver": result.device.driver,
                "pool": result.device.pool,
                "device": result.device.device,
                "consumed": {name: amount.text for name, amount in result.consumed.items()},
            }
