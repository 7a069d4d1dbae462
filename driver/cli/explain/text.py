"""Pods, claims and nodes explained in lines. Pure, but for asking the source."""

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class ExplainText:
    """The answer, and whether all is well."""

    text: out.Answer
    is_healthy: bool


def explain_pod(reports: source.Source, key: str) -> ExplainText:
    """A pod. Raises NotFound."""
    pod = reports.pod(key)
    if pod is None:
        raise options.not_found(f"there is no pod {key}, or it names no claims")
    return _told(pod, _pod_lines(pod), well=not pod.reason)


def explain_claim(reports: source.Source, key: str) -> ExplainText:
    """A claim. Raises NotFound."""
    claim = reports.claim(key)
    if claim is None:
        raise options.not_found(f"there is no ResourceClaim {key}")
    well = claim.state != "pending" and not claim.reason
    return _told(claim, _claim_lines(claim), well=well)


def explain_node(reports: source.Source, name: str) -> ExplainText:
    """A node. Raises NotFound."""
    node = reports.node(name)
    if node is None:
        raise options.not_found(
            f"no node {name} publishes GPUs of Ration: `ration doctor --node {name}`"
        )
    now = reports.fleet().at
    well = not node.problem and node.complete and all(gpu.health == "healthy" for gpu in node.gpus)
    return _told(node, _node_lines(node, now), well=well)


def _told(item: model.Document, result: Iterable[str], *, well: bool) -> ExplainText:
    document = item.model_dump(mode="json", by_alias=True)
    return ExplainText(out.Answer(document, ("\n".join(result),)), well)


def _pod_lines(pod: model.Pod) -> Iterator[str]:
    yield f"Pod {pod.key}: {_state(pod)}"
    yield from _facts(
        ("queue", pod.queue),
        ("gang", pod.gang),
        ("priority", str(pod.priority) if pod.priority else ""),
        ("claims", ", ".join(pod.claims)),
    )
    if pod.reason:
        yield ""
        yield from _wrapped(f"{pod.reason}: ", pod.message)
    if pod.explanation is not None:
        yield from _explanation(pod.explanation, message=bool(pod.reason))
    if pod.advice:
        yield ""
        yield from _wrapped("What to do: ", pod.advice)


def _state(pod: model.Pod) -> str:
    if pod.state == "waiting":
        return f"waits since {pod.created}"
    location = f" on {pod.node}" if pod.node else ""
    return f"{pod.state}{location}"


def _facts(*facts: tuple[str, str]) -> Iterator[str]:
    for name, value in facts:
        if value:
            yield f"  {name + ':':<10} {value}"


def _explanation(explanation: model.Explanation, *, message: bool) -> Iterator[str]:
    if explanation.why:
        yield ""
        yield from _wrapped(f"On {explanation.node}: ", explanation.why)
        for considered in explanation.considered:
            scores = "  ".join(f"{name} {score:g}" for name, score in considered.scores.items())
            yield f"  {considered.node:<24} {scores}"
        return
    if explanation.reason and not message:
        yield ""
        yield from _wrapped(f"{explanation.reason}: ", explanation.detail)
    if explanation.refusals:
        yield ""
        several = sum(refusal.count for refusal in explanation.refusals) > 1
        yield "What each node lacks:" if several else "What the node lacks:"
        for refusal in explanation.refusals:
            yield from _wrapped(f"  {_nodes(refusal)}: ", _refusal(refusal))
    if explanation.nearest is not None:
        yield ""
        yield from _wrapped("Nearest fit: ", explanation.nearest.summary)
        if explanation.nearest.leaving:
            yield from _wrapped("  in the way: ", ", ".join(explanation.nearest.leaving))


def _nodes(refusal: model.Refusal) -> str:
    more = refusal.count - len(refusal.nodes)
    return ", ".join(refusal.nodes) + (f" and {more} more" if more else "")


def _refusal(refusal: model.Refusal) -> str:
    if refusal.reason:
        return f"{refusal.reason} ({refusal.detail})" if refusal.detail else refusal.reason
    counted = ", ".join(f"{count} {reason}" for reason, count in refusal.devices.items())
    tail = f" ({counted})" if counted else ""
    gave_up = "; the search took too many steps" if refusal.gave_up else ""
    return f"{refusal.fits} of {refusal.wanted} devices fit{tail}{gave_up}"


def _claim_lines(claim: model.Claim) -> Iterator[str]:
    yield f"ResourceClaim {claim.key}: {claim.state}"
    yield from _facts(
        ("asks", "; ".join(f"{ask.name}: {ask.text}" for ask in claim.requests)),
        ("node", claim.node),
        ("queue", claim.queue),
        ("pods", ", ".join(claim.pods)),
        ("since", claim.since),
    )
    for device in claim.devices:
        part = device.part
        reported = (
            f" {part.mode} {source_format.format_part(part)}" if part else " (no longer published)"
        )
        yield f"  device:    {device.device}{reported}"
    for condition in claim.conditions:
        message = (
            f"{condition.reason}: {condition.message}" if condition.message else condition.reason
        )
        yield from _wrapped(f"  {condition.type}={condition.status} ", message)
    if claim.reason:
        yield ""
        yield from _wrapped(f"{claim.reason}: ", claim.message)
    if claim.state == "pending" and claim.pods:
        yield ""
        yield f"Its pod has the rest: ration explain pod {claim.pods[0]}"


def _node_lines(node: model.Node, now: str) -> Iterator[str]:
    yield f"Node {node.name}: {node.problem or 'takes work'}"
    yield from _facts(
        ("GPUs", f"{len(node.gpus)}: {', '.join(node.products)}"),
        ("memory", source_format.format_share(node.memory_allocated, node.memory)),
        ("given by", ", ".join(node.allocators)),
        ("taints", source_format.format_taints(node.taints)),
        ("pool", "" if node.complete else "slices of it are missing: nothing is given out"),
    )
    for gpu in node.gpus:
        ill = (
            ""
            if gpu.health == "healthy"
            else f"  {gpu.health}: {source_format.format_taints(gpu.taints)}"
        )
        yield f"  {gpu.name}  [{source_format.format_bar(gpu)}] {gpu.mode}{ill}"
        for part in gpu.parts:
            use = source_format.format_use(part.use, now)
            pods = source_format.format_names(part.pods) or "no pod"
            yield f"    {part.claim}  {source_format.format_part(part)}  {pods}" + (
                f"  {use}" if use else ""
            )
        for retained in gpu.kept:
            by = f" by Reservation {retained.reservation}" if retained.reservation else ""
            yield f"    kept for {source_format.format_kept(retained)}{by}"


def _wrapped(head: str, text: str) -> Iterator[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    yield from textwrap.wrap(
        head + text,
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
