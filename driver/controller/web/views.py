"""What each URL shows: its query, its document, its name. One table for the page and the JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from driver.controller.reports import model
from driver.controller.web import listing, ports, queries

Names: TypeAlias = Mapping[str, str]
"""What the URL's path names."""
Tell: TypeAlias = Callable[[ports.Reports, Names, Any], model.Document]
"""The document of a query of the view's own kind. Raises Unknown."""
D = TypeVar("D", bound=model.Document)


class Unknown(Exception):  # noqa: N818 - as the house's errors, by what happened
    """There is no such object: `what`, in words."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"there is no {what}")


@dataclass(frozen=True, slots=True)
class View:
    """One report. `name` is its template's too; `title` takes the names of the path."""

    name: str
    rule: str
    query: type[queries.Query]
    tell: Tell
    title: str


def _there(found: D | None, what: str) -> D:
    if found is None:
        raise Unknown(what)
    return found


def _key(names: Names) -> str:
    return f"{names['namespace']}/{names['name']}"


def _fleet(reports: ports.Reports, _: Names, __: queries.One) -> model.Document:
    return reports.fleet()


def _nodes(reports: ports.Reports, _: Names, query: queries.Nodes) -> model.Document:
    return listing.nodes(reports.nodes(), query)


def _node(reports: ports.Reports, names: Names, _: queries.One) -> model.Document:
    return _there(reports.node(names["node"]), f"node {names['node']} with GPUs of ours")


def _gpu(reports: ports.Reports, names: Names, _: queries.One) -> model.Document:
    what = f"GPU {names['gpu']} on node {names['node']}"
    return _there(reports.gpu(names["node"], names["gpu"]), what)


def _claims(reports: ports.Reports, _: Names, query: queries.Things) -> model.Document:
    return listing.claims(reports.claims(query.namespace), query)


def _claim(reports: ports.Reports, names: Names, _: queries.One) -> model.Document:
    return _there(reports.claim(_key(names)), f"ResourceClaim {_key(names)}")


def _waiting(reports: ports.Reports, _: Names, query: queries.Things) -> model.Document:
    return listing.pods(reports.waiting(), query)


def _pod(reports: ports.Reports, names: Names, _: queries.One) -> model.Document:
    return _there(reports.pod(_key(names)), f"pod {_key(names)}")


def _queues(reports: ports.Reports, _: Names, query: queries.Things) -> model.Document:
    return listing.queues(reports.queues(), query)


def _queue(reports: ports.Reports, names: Names, _: queries.One) -> model.Document:
    return _there(reports.queue(names["name"]), f"Queue {names['name']}")


def _reservations(reports: ports.Reports, _: Names, query: queries.Things) -> model.Document:
    return listing.reservations(reports.reservations(), query)


def _reservation(reports: ports.Reports, names: Names, _: queries.One) -> model.Document:
    return _there(reports.reservation(_key(names)), f"Reservation {_key(names)}")


def _timeline(reports: ports.Reports, _: Names, query: queries.Moments) -> model.Document:
    return listing.timeline(reports.timeline(), query)


_ONE, _THINGS = queries.One, queries.Things
_KEYED = "<namespace>/<name>"
FLEET = View("fleet", "/fleet", _ONE, _fleet, "Fleet")
VIEWS = (
    FLEET,
    View("overview", "/nodes", queries.Nodes, _nodes, "Overview"),
    View("node", "/nodes/<node>", _ONE, _node, "Node {node}"),
    View("gpu", "/nodes/<node>/gpus/<gpu>", _ONE, _gpu, "{gpu} on {node}"),
    View("claims", "/claims", _THINGS, _claims, "Claims"),
    View("claim", f"/claims/{_KEYED}", _ONE, _claim, "Claim {namespace}/{name}"),
    View("waiting", "/waiting", _THINGS, _waiting, "Waiting pods"),
    View("pod", f"/pods/{_KEYED}", _ONE, _pod, "Pod {namespace}/{name}"),
    View("queues", "/queues", _THINGS, _queues, "Queues"),
    View("queue", "/queues/<name>", _ONE, _queue, "Queue {name}"),
    View("reservations", "/reservations", _THINGS, _reservations, "Reservations"),
    View(
        "reservation", f"/reservations/{_KEYED}", _ONE, _reservation,
        "Reservation {namespace}/{name}",
    ),
    View("timeline", "/timeline", queries.Moments, _timeline, "Timeline"),
)  # fmt: skip
"""Each is at its rule as a page, and as JSON below `paths.API`."""
