"""Table of views for the page and the JSON: query, document and name of each URL."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from driver.controller.web.render import lists as render_lists
from driver.controller.web.render import queries
from driver.scheduling.reports import catalog, model, selection

Names: TypeAlias = Mapping[str, str]
"""What the URL's path names."""
BuildDocument: TypeAlias = Callable[[catalog.Reports, Names, Any], model.Document]
"""The document of a query of the view's own kind. Raises NotFound."""
ALL_ITEMS = selection.PageRequest(limit=sys.maxsize)
D = TypeVar("D", bound=model.Document)


class NotFound(Exception):
    """There is no such object: `subject`, in words."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        super().__init__(f"there is no {subject}")


@dataclass(frozen=True, slots=True)
class View:
    """A report. `name` is also its template's; `title` is formatted with the path's names."""

    name: str
    rule: str
    query: type[queries.Query]
    build: BuildDocument
    title: str


def _require(document: D | None, subject: str) -> D:
    if document is None:
        raise NotFound(subject)
    return document


def _key(names: Names) -> str:
    return f"{names['namespace']}/{names['name']}"


def _part(query: queries.Query) -> selection.PageRequest:
    return selection.PageRequest(query.after, query.limit)


def _list_objects(
    report: Callable[[str, selection.PageRequest], model.Claims | model.Pods],
    query: queries.ObjectQuery,
) -> model.Document:
    """Return a page of a list, filtered by name."""
    if not query.name:
        return report(query.namespace, _part(query))
    every = report(query.namespace, ALL_ITEMS)
    items: Sequence[model.Claim | model.Pod] = every.items
    part = render_lists.filter_by_name(items, lambda entry: entry.key, query)
    return every.model_copy(update=part._asdict())


def _fleet(reports: catalog.Reports, _: Names, __: queries.NoFilters) -> model.Document:
    return reports.fleet()


def _nodes(reports: catalog.Reports, _: Names, query: queries.NodeQuery) -> model.Document:
    return render_lists.nodes(reports.nodes(ALL_ITEMS).items, query)


def _node(reports: catalog.Reports, names: Names, _: queries.NoFilters) -> model.Document:
    return _require(reports.node(names["node"]), f"node {names['node']} with GPUs of ours")


def _gpu(reports: catalog.Reports, names: Names, _: queries.NoFilters) -> model.Document:
    subject = f"GPU {names['gpu']} on node {names['node']}"
    return _require(reports.gpu(names["node"], names["gpu"]), subject)


def _claims(reports: catalog.Reports, _: Names, query: queries.ObjectQuery) -> model.Document:
    return _list_objects(reports.claims, query)


def _claim(reports: catalog.Reports, names: Names, _: queries.NoFilters) -> model.Document:
    return _require(reports.claim(_key(names)), f"ResourceClaim {_key(names)}")


def _waiting(reports: catalog.Reports, _: Names, query: queries.ObjectQuery) -> model.Document:
    return _list_objects(reports.waiting, query)


def _pods(reports: catalog.Reports, _: Names, query: queries.ObjectQuery) -> model.Document:
    return _list_objects(reports.pods, query)


def _pod(reports: catalog.Reports, names: Names, _: queries.NoFilters) -> model.Document:
    return _require(reports.pod(_key(names)), f"pod {_key(names)}")


def _queues(reports: catalog.Reports, _: Names, __: queries.NoFilters) -> model.Document:
    return reports.queues()


def _queue(reports: catalog.Reports, names: Names, _: queries.NoFilters) -> model.Document:
    return _require(reports.queue(names["name"]), f"Queue {names['name']}")


def _reservations(reports: catalog.Reports, _: Names, __: queries.NoFilters) -> model.Document:
    return reports.reservations()


def _reservation(reports: catalog.Reports, names: Names, _: queries.NoFilters) -> model.Document:
    key = _key(names)
    reservations = (
        reservation
        for reservation in reports.reservations().items
        if f"{reservation.namespace}/{reservation.name}" == key
    )
    return _require(next(reservations, None), f"Reservation {key}")


def _shapes(reports: catalog.Reports, _: Names, __: queries.NoFilters) -> model.Document:
    return reports.shapes()


def _timeline(reports: catalog.Reports, _: Names, query: queries.TimelineQuery) -> model.Document:
    return render_lists.timeline(reports.timeline(ALL_ITEMS).items, query)


_ONE, _THINGS = queries.NoFilters, queries.ObjectQuery
_KEYED = "<namespace>/<name>"
FLEET = View("fleet", "/fleet", _ONE, _fleet, "Fleet")
VIEWS = (
    FLEET,
    View("overview", "/nodes", queries.NodeQuery, _nodes, "Overview"),
    View("node", "/nodes/<node>", _ONE, _node, "Node {node}"),
    View("gpu", "/nodes/<node>/gpus/<gpu>", _ONE, _gpu, "{gpu} on {node}"),
    View("claims", "/claims", _THINGS, _claims, "Claims"),
    View("claim", f"/claims/{_KEYED}", _ONE, _claim, "Claim {namespace}/{name}"),
    View("waiting", "/waiting", _THINGS, _waiting, "Waiting pods"),
    View("pods", "/pods", _THINGS, _pods, "Pods"),
    View("pod", f"/pods/{_KEYED}", _ONE, _pod, "Pod {namespace}/{name}"),
    View("queues", "/queues", _ONE, _queues, "Queues"),
    View("queue", "/queues/<name>", _ONE, _queue, "Queue {name}"),
    View("reservations", "/reservations", _ONE, _reservations, "Reservations"),
    View(
        "reservation", f"/reservations/{_KEYED}", _ONE, _reservation,
        "Reservation {namespace}/{name}",
    ),
    View("shapes", "/shapes", _ONE, _shapes, "Nodes on demand"),
    View("timeline", "/timeline", queries.TimelineQuery, _timeline, "Timeline"),
)  # fmt: skip
"""Each is at its rule as a page, and as JSON below `paths.API`."""
