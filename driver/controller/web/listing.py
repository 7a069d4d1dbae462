"""The part of a list that was asked for: filtered, in order, cut into pages. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from driver.controller.reports import model
from driver.controller.web import queries

T = TypeVar("T")


def nodes(found: Sequence[model.Node], wanted: queries.Nodes) -> model.Nodes:
    """Nodes with a GPU that is meant; each is whole, so that what is beside it is seen too."""
    meant = [one for one in found if wanted.node in one.name]
    if wanted.narrows:
        meant = [one for one in meant if any(is_meant(gpu, wanted) for gpu in one.gpus)]
    if wanted.sort != "name":
        meant.sort(key=_used, reverse=wanted.sort == "used")
    items, following = cut(meant, lambda one: one.name, wanted)
    return model.Nodes(total=len(meant), next=following, items=items)


def _used(node: model.Node) -> float:
    return node.memory_allocated / node.memory if node.memory else 0.0


def is_meant(gpu: model.Gpu, wanted: queries.Nodes) -> bool:
    """Whether a GPU is one of those that are asked for."""
    return (
        (not wanted.product or gpu.product == wanted.product)
        and (not wanted.mode or gpu.mode == wanted.mode)
        and (not wanted.state or _STATES[wanted.state](gpu))
    )


_STATES: dict[str, Callable[[model.Gpu], bool]] = {
    "free": lambda gpu: gpu.mode == "free" and gpu.health == "healthy",
    "used": lambda gpu: gpu.mode != "free",
    "idle": lambda gpu: any(part.use and part.use.idle_since for part in gpu.parts),
    "kept": lambda gpu: bool(gpu.kept),
    "cordoned": lambda gpu: gpu.health == "cordoned",
    "unhealthy": lambda gpu: gpu.health == "unhealthy",
}


def claims(found: Iterable[model.Claim], wanted: queries.Things) -> model.Claims:
    """Claims by name; their namespace was asked for before."""
    meant = [one for one in found if wanted.name in one.name]
    items, following = cut(meant, lambda one: one.key, wanted)
    return model.Claims(total=len(meant), next=following, items=items)


def pods(found: Iterable[model.Pod], wanted: queries.Things) -> model.Pods:
    """Pods by namespace and name."""
    meant = [one for one in found if _is_called(one.namespace, one.name, wanted)]
    items, following = cut(meant, lambda one: one.key, wanted)
    return model.Pods(total=len(meant), next=following, items=items)


def queues(found: Iterable[model.Queue], wanted: queries.Things) -> model.Queues:
    """Queues by name."""
    meant = [one for one in found if wanted.name in one.name]
    items, following = cut(meant, lambda one: one.name, wanted)
    return model.Queues(total=len(meant), next=following, items=items)


def reservations(
    found: Iterable[model.Reservation], wanted: queries.Things
) -> model.Reservations:
    """Reservations by namespace and name."""
    meant = [one for one in found if _is_called(one.namespace, one.name, wanted)]
    items, following = cut(meant, lambda one: f"{one.namespace}/{one.name}", wanted)
    return model.Reservations(total=len(meant), next=following, items=items)


def _is_called(namespace: str, name: str, wanted: queries.Things) -> bool:
    return wanted.namespace in {"", namespace} and wanted.name in name


def timeline(found: Iterable[model.Moment], wanted: queries.Moments) -> model.Timeline:
    """What happened, of an object or of a reason."""
    meant = [
        one
        for one in found
        if wanted.namespace in {"", one.namespace}
        and wanted.name in one.name
        and wanted.reason in {"", one.reason}
        and wanted.kind in {"", one.kind}
    ]
    return model.Timeline(total=len(meant), items=tuple(meant[: wanted.limit]))


def cut(
    found: Sequence[T], key: Callable[[T], str], wanted: queries.Query
) -> tuple[tuple[T, ...], str]:
    """The page that was asked for, and after what the next begins: "" at the end."""
    begin = 0
    if wanted.after:
        at = next((place for place, one in enumerate(found) if key(one) == wanted.after), None)
        # What is gone by now begins where it would be, in order of keys.
        begin = sum(1 for one in found if key(one) <= wanted.after) if at is None else at + 1
    shown = tuple(found[begin : begin + wanted.limit])
    more = begin + wanted.limit < len(found)
    return shown, key(shown[-1]) if shown and more else ""
