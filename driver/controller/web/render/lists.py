"""Filters, sorts and pages lists. Pure."""

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


def nodes(node_list: Sequence[model.Node], query: queries.NodeQuery) -> model.Nodes:
    """Return the nodes with a matching GPU; each whole, with the GPUs beside it."""
    meant = [node for node in node_list if query.name in node.name]
    if query.narrows:
        meant = [node for node in meant if any(is_match(gpu, query) for gpu in node.gpus)]
    if query.sort != "name":
        meant.sort(key=_used, reverse=query.sort == "used")
    items, following = paging.page(meant, lambda node: node.name, query.after, query.limit)
    return model.Nodes(total=len(meant), next=following, items=items)


def _used(node: model.Node) -> float:
    return node.memory_allocated / node.memory if node.memory else 0.0


def is_match(gpu: model.Gpu, query: queries.NodeQuery) -> bool:
    """Return whether a GPU matches the query."""
    return (
        (not query.product or gpu.product == query.product)
        and (not query.mode or gpu.mode == query.mode)
        and (not query.health or gpu.health == query.health)
        and (not query.state or _STATES[query.state](gpu))
    )


_STATES: dict[str, Callable[[model.Gpu], bool]] = {
    "free": lambda gpu: gpu.mode == "free" and gpu.health == "healthy",
    "used": lambda gpu: gpu.mode not in {"free", "kept"},
    "idle": lambda gpu: any(part.use and part.use.idle_since for part in gpu.parts),
    "kept": lambda gpu: bool(gpu.kept),
    "cordoned": lambda gpu: gpu.health == "cordoned",
    "unhealthy": lambda gpu: gpu.health == "unhealthy",
}


def timeline(events: Iterable[model.Moment], query: queries.TimelineQuery) -> model.Timeline:
    """Return the events that match the query."""
    meant = [
        event
        for event in events
        if query.namespace in {"", event.namespace}
        and query.name in event.name
        and query.reason in {"", event.reason}
        and query.kind in {"", event.kind}
    ]
    return model.Timeline(total=len(meant), items=tuple(meant[: query.limit]))


def filter_by_name(
    candidates: Sequence[T], key: Callable[[T], str], query: queries.ObjectQuery
) -> Part[T]:
    """Return a page of the items whose key's name contains the query's."""
    meant = [item for item in candidates if query.name in key(item).rpartition("/")[2]]
    items, following = paging.page(meant, key, query.after, query.limit)
    return Part(len(meant), following, items)
