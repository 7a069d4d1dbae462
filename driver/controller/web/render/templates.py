"""The page's templates: jinja2, with every value escaped."""

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
    """What templates may use."""
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
    """Words in which `programs` are marked as reasons and advice mark them."""
    parts = [markupsafe.escape(one) for one in text.split("`")]
    marked = (f"<code>{one}</code>" if place % 2 else one for place, one in enumerate(parts))
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
    """The form that takes a token; `why` the last one was not taken."""
    return _rendered("login.html", title="Log in", why=why, after=after)


def _rendered(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template shows
    asked = flask.request.query_string.decode(errors="replace")
    values = {"query": queries.NoFilters(live="off"), "as_of": ""} | values
    values.setdefault("twin", paths.twin(flask.request.path, asked))
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
        "waiting": [reports.pod(one.key) for one in first],
        "products": [one.product for one in fleet.products],
        "dimmed": dimmed,
    }


def _node(_: catalog.Reports, document: model.Node, __: queries.Query) -> dict[str, object]:
    return {"reach": charts.reaches(document.gpus)}


def _claim(reports: catalog.Reports, document: model.Claim, _: queries.Query) -> dict[str, object]:
    """The GPUs that it has something of."""
    places = dict.fromkeys((one.node, one.gpu) for one in document.devices if one.gpu)
    found = [reports.gpu(*place) for place in places]
    return {"gpus": [one for one in found if one is not None]}


def _pod(reports: catalog.Reports, document: model.Pod, _: queries.Query) -> dict[str, object]:
    return {"claims": [one for one in map(reports.claim, document.claims) if one is not None]}


def _queues(_: catalog.Reports, document: model.Queues, __: queries.Query) -> dict[str, object]:
    return {"drawn": charts.queue_bars(document.items)}


def _queue(_: catalog.Reports, document: model.Queue, __: queries.Query) -> dict[str, object]:
    return {"drawn": charts.queue_bars([document])}


def _timeline(reports: catalog.Reports, _: model.Timeline, __: queries.Query) -> dict[str, object]:
    found = reports.timeline(views.ALL_ITEMS).items
    return {
        "reasons": sorted({one.reason for one in found}),
        "kinds": sorted({one.kind for one in found}),
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
