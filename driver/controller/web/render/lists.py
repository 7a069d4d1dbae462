"""The part of a list that was asked for: filtered, in order, cut into pages. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from driver.controller.web.render import queries
from driver.scheduling.reports import model, paging

T = TypeVar("T")


class Part(NamedTuple, Generic[T]):
    """A page of a list, as its document has it."""

    total: int
    next: str
    items: tuple[T, ...]


def nodes(found: Sequence[model.Node], wanted: queries.NodeQuery) -> model.Nodes:
    """Nodes with a GPU that is meant; each is whole, so that what is beside it is seen too."""
    meant = [one for one in found if wanted.name in one.name]
    if wanted.narrows:
        meant = [one for one in meant if any(is_match(gpu, wanted) for gpu in one.gpus)]
    if wanted.sort != "name":
        meant.sort(key=_used, reverse=wanted.sort == "used")
    items, following = paging.page(meant, lambda one: one.name, wanted.after, wanted.limit)
    return model.Nodes(total=len(meant), next=following, items=items)


def _used(node: model.Node) -> float:
    return node.memory_allocated / node.memory if node.memory else 0.0


def is_match(gpu: model.Gpu, wanted: queries.NodeQuery) -> bool:
    """Whether a GPU is one of those that are asked for."""
    return (
        (not wanted.product or gpu.product == wanted.product)
        and (not wanted.mode or gpu.mode == wanted.mode)
        and (not wanted.health or gpu.health == wanted.health)
        and (not wanted.state or _STATES[wanted.state](gpu))
    )


_STATES: dict[str, Callable[[model.Gpu], bool]] = {
    "free": lambda gpu: gpu.mode == "free" and gpu.health == "healthy",
    "used": lambda gpu: gpu.mode not in {"free", "kept"},
    "idle": lambda gpu: any(part.use and part.use.idle_since for part in gpu.parts),
    "kept": lambda gpu: bool(gpu.kept),
    "cordoned": lambda gpu: gpu.health == "cordoned",
    "unhealthy": lambda gpu: gpu.health == "unhealthy",
}


def timeline(found: Iterable[model.Moment], wanted: queries.TimelineQuery) -> model.Timeline:
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


def filter_by_name(
    found: Sequence[T], key: Callable[[T], str], wanted: queries.ObjectQuery
) -> Part[T]:
    """Those whose name has a part, by keys that end with the name."""
    meant = [one for one in found if wanted.name in key(one).rpartition("/")[2]]
    items, following = paging.page(meant, key, wanted.after, wanted.limit)
    return Part(len(meant), following, items)
