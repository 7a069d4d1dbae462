"""Templates of the page: jinja2, with every value escaped."""

from collections.abc import Callable, Mapping
from typing import Any

import flask
import jinja2
import markupsafe

from driver import clock
from driver.controller.web import views
from driver.controller.web.render import charts, lists, paths, queries
from driver.scheduling.reports import catalog, model, selection
from driver.scheduling.reports import format as render_format

REFRESH_S = 5
"""How often a page reads itself anew."""
_FIRST = 8
"""Waiting pods on the overview."""
_MODES = ("whole", "mig", "mps", "time-slicing", "monitor")
_TITLES = {400: "That was not understood", 401: "Who are you?", 403: "Not allowed"} | {
    404: "Not found",
    503: "Not here",
}


def configure(app: flask.Flask, time: clock.Clock) -> None:
    """Register globals and filters of the templates."""
    env = app.jinja_env
    env.trim_blocks = env.lstrip_blocks = True
    env.undefined = jinja2.StrictUndefined
    env.globals.update(
        paths=paths,
        bars=charts,
        words=render_format,
        modes=_MODES,
        every_s=REFRESH_S,
        knows_callers=False,
    )
    env.filters.update(
        memory=render_format.memory,
        mode=render_format.mode,
        at=render_format.at,
        coded=render_code,
        ago=lambda stamp: render_format.age(stamp, time.now()),
    )


def render_code(text: str) -> markupsafe.Markup:
    """Return text with `programs` marked as code."""
    parts = [markupsafe.escape(part) for part in text.split("`")]
    marked = (f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
    return markupsafe.Markup("".join(marked))  # noqa: S704 - every part was escaped


def page(
    view: views.View,
    names: Mapping[str, str],
    query: queries.Query,
    document: model.Document,
    reports: catalog.Reports,
) -> str:
    """A view as a page."""
    more = _MORE.get(view.name, _nothing)(reports, document, query)
    title = view.title.format_map(names)
    shown = {"query": query, "doc": document, "as_of": reports.read_at}
    return _rendered(f"{view.name}.html", title=title, **shown, **more)


def error(code: int, problem: str, leader: str = "") -> str:
    """An error as a page, with what may be done."""
    title = _TITLES.get(code, "Something is wrong")
    return _rendered("error.html", title=title, code=code, problem=problem, leader=leader)


def login(why: str, after: str) -> str:
    """Return the token form; `why` the last token was refused."""
    return _rendered("login.html", title="Log in", why=why, after=after)


def _rendered(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template shows
    query_string = flask.request.query_string.decode(errors="replace")
    values = {"query": queries.NoFilters(live="off"), "as_of": ""} | values
    values.setdefault("twin", paths.twin(flask.request.path, query_string))
    return flask.render_template(template, here=flask.request.full_path.rstrip("?"), **values)


_More = Callable[[catalog.Reports, Any, Any], dict[str, object]]


def _nothing(_: catalog.Reports, __: model.Document, ___: queries.Query) -> dict[str, object]:
    return {}


def _overview(
    reports: catalog.Reports, document: model.Nodes, query: queries.NodeQuery
) -> dict[str, object]:
    fleet = reports.fleet()
    first = reports.waiting(part=selection.PageRequest(limit=_FIRST)).items
    dimmed = {
        (gpu.node, gpu.name)
        for node in document.items
        for gpu in node.gpus
        if query.narrows and not lists.is_match(gpu, query)
    }
    return {
        "fleet": fleet,
        "managed_drivers": reports.managed_drivers,
        "waiting": [reports.pod(product.key) for product in first],
        "products": [product.product for product in fleet.products],
        "dimmed": dimmed,
    }


def _node(_: catalog.Reports, document: model.Node, __: queries.Query) -> dict[str, object]:
    return {"reach": charts.reaches(document.gpus)}


def _claim(reports: catalog.Reports, document: model.Claim, _: queries.Query) -> dict[str, object]:
    """Return the GPUs of a claim's devices."""
    places = dict.fromkeys((device.node, device.gpu) for device in document.devices if device.gpu)
    gpus = [reports.gpu(*key) for key in places]
    return {"gpus": [device for device in gpus if device is not None]}


def _pod(reports: catalog.Reports, document: model.Pod, _: queries.Query) -> dict[str, object]:
    return {"claims": [claim for claim in map(reports.claim, document.claims) if claim is not None]}


def _queues(_: catalog.Reports, document: model.Queues, __: queries.Query) -> dict[str, object]:
    return {"drawn": charts.queue_bars(document.items)}


def _queue(_: catalog.Reports, document: model.Queue, __: queries.Query) -> dict[str, object]:
    return {"drawn": charts.queue_bars([document])}


def _timeline(reports: catalog.Reports, _: model.Timeline, __: queries.Query) -> dict[str, object]:
    events = reports.timeline(views.ALL_ITEMS).items
    return {
        "reasons": sorted({event.reason for event in events}),
        "kinds": sorted({event.kind for event in events}),
    }


_MORE: dict[str, _More] = {
    "overview": _overview,
    "node": _node,
    "claim": _claim,
    "pod": _pod,
    "queues": _queues,
    "queue": _queue,
    "timeline": _timeline,
}
