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
class Told:
    """The answer, and whether all is well."""

    answer: out.Answer
    well: bool


def pod(of: source.Source, key: str) -> Told:
    """A pod. Raises NotFound."""
    one = of.pod(key)
    if one is None:
        raise options.missing(f"there is no pod {key}, or it names no claims")
    return _told(one, _pod_lines(one), well=not one.reason)


def claim(of: source.Source, key: str) -> Told:
    """A claim. Raises NotFound."""
    one = of.claim(key)
    if one is None:
        raise options.missing(f"there is no ResourceClaim {key}")
    well = one.state != "pending" and not one.reason
    return _told(one, _claim_lines(one), well=well)


def node(of: source.Source, name: str) -> Told:
    """A node. Raises NotFound."""
    one = of.node(name)
    if one is None:
        raise options.missing(
            f"no node {name} publishes GPUs of Ration: `ration doctor --node {name}`"
        )
    at = of.fleet().at
    well = not one.problem and one.complete and all(gpu.health == "healthy" for gpu in one.gpus)
    return _told(one, _node_lines(one, at), well=well)


def _told(one: model.Document, found: Iterable[str], *, well: bool) -> Told:
    document = one.model_dump(mode="json", by_alias=True)
    return Told(out.Answer(document, ("\n".join(found),)), well)


def _pod_lines(one: model.Pod) -> Iterator[str]:
    yield f"Pod {one.key}: {_state(one)}"
    yield from _facts(
        ("queue", one.queue),
        ("gang", one.gang),
        ("priority", str(one.priority) if one.priority else ""),
        ("claims", ", ".join(one.claims)),
    )
    if one.reason:
        yield ""
        yield from _wrapped(f"{one.reason}: ", one.message)
    if one.explanation is not None:
        yield from _explanation(one.explanation, told=bool(one.reason))
    if one.advice:
        yield ""
        yield from _wrapped("What to do: ", one.advice)


def _state(one: model.Pod) -> str:
    if one.state == "waiting":
        return f"waits since {one.created}"
    where = f" on {one.node}" if one.node else ""
    return f"{one.state}{where}"


def _facts(*found: tuple[str, str]) -> Iterator[str]:
    for name, value in found:
        if value:
            yield f"  {name + ':':<10} {value}"


def _explanation(found: model.Explanation, *, told: bool) -> Iterator[str]:
    if found.why:
        yield ""
        yield from _wrapped(f"On {found.node}: ", found.why)
        for one in found.considered:
            scores = "  ".join(f"{name} {score:g}" for name, score in one.scores.items())
            yield f"  {one.node:<24} {scores}"
        return
    if found.reason and not told:
        yield ""
        yield from _wrapped(f"{found.reason}: ", found.detail)
    if found.refusals:
        yield ""
        several = sum(refusal.count for refusal in found.refusals) > 1
        yield "What each node lacks:" if several else "What the node lacks:"
        for refusal in found.refusals:
            yield from _wrapped(f"  {_nodes(refusal)}: ", _refusal(refusal))
    if found.nearest is not None:
        yield ""
        yield from _wrapped("Nearest fit: ", found.nearest.summary)
        if found.nearest.leaving:
            yield from _wrapped("  in the way: ", ", ".join(found.nearest.leaving))


def _nodes(one: model.Refusal) -> str:
    more = one.count - len(one.nodes)
    return ", ".join(one.nodes) + (f" and {more} more" if more else "")


def _refusal(one: model.Refusal) -> str:
    if one.reason:
        return f"{one.reason} ({one.detail})" if one.detail else one.reason
    counted = ", ".join(f"{count} {reason}" for reason, count in one.devices.items())
    tail = f" ({counted})" if counted else ""
    gave_up = "; the search took too many steps" if one.gave_up else ""
    return f"{one.fits} of {one.wanted} devices fit{tail}{gave_up}"


def _claim_lines(one: model.Claim) -> Iterator[str]:
    yield f"ResourceClaim {one.key}: {one.state}"
    yield from _facts(
        ("asks", "; ".join(f"{ask.name}: {ask.text}" for ask in one.requests)),
        ("node", one.node),
        ("queue", one.queue),
        ("pods", ", ".join(one.pods)),
        ("since", one.since),
    )
    for device in one.devices:
        part = device.part
        told = f" {part.mode} {source_format.part(part)}" if part else " (no longer published)"
        yield f"  device:    {device.device}{told}"
    for condition in one.conditions:
        said = f"{condition.reason}: {condition.message}" if condition.message else condition.reason
        yield from _wrapped(f"  {condition.type}={condition.status} ", said)
    if one.reason:
        yield ""
        yield from _wrapped(f"{one.reason}: ", one.message)
    if one.state == "pending" and one.pods:
        yield ""
        yield f"Its pod has the rest: ration explain pod {one.pods[0]}"


def _node_lines(one: model.Node, at: str) -> Iterator[str]:
    yield f"Node {one.name}: {one.problem or 'takes work'}"
    yield from _facts(
        ("GPUs", f"{len(one.gpus)}: {', '.join(one.products)}"),
        ("memory", source_format.share(one.memory_allocated, one.memory)),
        ("given by", ", ".join(one.allocators)),
        ("taints", source_format.taints(one.taints)),
        ("pool", "" if one.complete else "slices of it are missing: nothing is given out"),
    )
    for gpu in one.gpus:
        ill = (
            "" if gpu.health == "healthy" else f"  {gpu.health}: {source_format.taints(gpu.taints)}"
        )
        yield f"  {gpu.name}  [{source_format.bar(gpu)}] {gpu.mode}{ill}"
        for part in gpu.parts:
            use = source_format.use(part.use, at)
            pods = source_format.several(part.pods) or "no pod"
            yield f"    {part.claim}  {source_format.part(part)}  {pods}" + (
                f"  {use}" if use else ""
            )
        for kept in gpu.kept:
            by = f" by Reservation {kept.reservation}" if kept.reservation else ""
            yield f"    kept for {source_format.kept(kept)}{by}"


def _wrapped(head: str, text: str) -> Iterator[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    yield from textwrap.wrap(
        head + text,
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
