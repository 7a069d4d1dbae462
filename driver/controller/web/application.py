"""WSGI application: every view as a page and as JSON, errors as text, safe headers."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import flask

from driver import clock
from driver.controller.web import errors, metrics, ports, views
from driver.controller.web.auth import guard
from driver.controller.web.render import paths, queries, templates
from driver.scheduling.reports import model

_STATIC_S = 300
_POLICY = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
ForwardRequest: TypeAlias = Callable[[str, str], flask.Response | None]
"""The leader's answer to a path and its query, for a token; None: it was not reached."""


@dataclass(frozen=True, slots=True)
class AppDeps:
    """Dependencies of the application."""

    source: ports.ReportSource
    guard: guard.Guard
    metrics: metrics.Metrics
    clock: clock.Clock
    forward: ForwardRequest | None = None


def build_app(parts: AppDeps) -> flask.Flask:
    """Return the application."""
    app = flask.Flask("driver.controller.web", static_url_path="/static")
    app.config["SEND_FILE_MAX_AGE_DEFAULT"] = _STATIC_S
    app.config["MAX_CONTENT_LENGTH"] = guard.MAX_BYTES
    templates.configure(app, parts.clock)
    for view in views.VIEWS:
        shown = functools.partial(_page, parts, view)
        json_view = functools.partial(_json, parts, view)
        app.add_url_rule(view.rule, f"page.{view.name}", shown)
        app.add_url_rule(paths.API + view.rule, f"json.{view.name}", json_view)
    by_name = {view.name: view for view in views.VIEWS}
    app.add_url_rule("/", "page.first", functools.partial(_page, parts, by_name["overview"]))
    app.add_url_rule(paths.API, "json.index", _index)
    guard.attach(app, parts.guard)
    errors.attach(app, lambda: parts.forward and guard.forward_request(parts.forward))
    _measure(app, parts)
    app.after_request(_headed)
    return app


def _page(parts: AppDeps, view: views.View, **names: str) -> str:
    """A view as a page."""
    if view is views.FLEET:
        flask.abort(flask.redirect("/"))
    query = queries.read(view.query, flask.request.args.to_dict())
    reports = parts.source.read()
    return templates.page(view, names, query, view.build(reports, names, query), reports)


def _json(parts: AppDeps, view: views.View, **names: str) -> flask.Response:
    """A view as JSON."""
    query = queries.read(view.query, flask.request.args.to_dict())
    document = view.build(parts.source.read(), names, query)
    return _written(document)


def _written(document: model.Document, code: int = 200) -> flask.Response:
    body = document.model_dump_json(by_alias=True) + "\n"
    return flask.Response(body, code, mimetype="application/json")


def _index() -> flask.Response:
    """Return the paths of all views."""
    return flask.jsonify({"paths": [paths.API + view.rule for view in views.VIEWS]})


def _measure(app: flask.Flask, parts: AppDeps) -> None:
    def begin() -> None:
        flask.g.began = parts.clock.monotonic()

    def end(answer: flask.Response) -> flask.Response:
        endpoint = (flask.request.endpoint or "other").rpartition(".")[2]
        route = "overview" if endpoint == "first" else endpoint
        seconds = parts.clock.monotonic() - flask.g.began
        parts.metrics.observe_request(route, answer.status_code, seconds)
        return answer

    # Before all others, whoever answers.
    app.before_request_funcs.setdefault(None, []).insert(0, begin)
    app.after_request(end)


def _headed(answer: flask.Response) -> flask.Response:
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    if flask.request.endpoint != "static":
        answer.headers["Cache-Control"] = "no-store"
    return answer
