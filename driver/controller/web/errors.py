"""Every error is one line in words, as JSON or on a page."""

from collections.abc import Callable
from typing import Any

import flask
import structlog
from werkzeug import exceptions

from driver import errors
from driver.controller.web import ports, views
from driver.controller.web.render import paths, templates

_log = structlog.get_logger(__name__)
_WORDS = {
    400: "the request makes no sense",
    404: "there is no such page",
    405: "the page is for reading: expected GET or HEAD",
    413: "the request is too large",
}


def error_response(code: int, problem: str, *, leader: str = "") -> flask.Response:
    """An error in words, in the form that was asked for."""
    if flask.request.path.startswith(paths.API):
        document = {"error": problem, "code": code} | ({"leader": leader} if leader else {})
        body = flask.json.dumps(document) + "\n"
        return flask.Response(body, code, mimetype="application/json")
    return flask.Response(templates.error(code, problem, leader), code)


def attach(app: flask.Flask, elsewhere: Callable[[], flask.Response | None]) -> None:
    """Answer what fails; `elsewhere` is the leader's answer, where this replica cannot tell."""
    app.register_error_handler(views.NotFound, lambda error: error_response(404, str(error)))
    app.register_error_handler(errors.BadInput, lambda error: error_response(400, str(error)))
    app.register_error_handler(errors.ApiError, _unanswered)
    app.register_error_handler(exceptions.HTTPException, _http)
    app.register_error_handler(Exception, _fault)

    def away(error: ports.NotLeader) -> flask.Response:
        return elsewhere() or error_response(503, error.problem, leader=error.leader)

    app.register_error_handler(ports.NotLeader, away)


def _unanswered(error: errors.ApiError) -> flask.Response:
    _log.warning("page not answered", path=flask.request.path, error=str(error))
    return error_response(502, f"the API server could not be asked: {error}")


def _http(error: exceptions.HTTPException) -> Any:  # noqa: ANN401 - what Flask makes answers of
    if error.response is not None:  # a redirect
        return error.response
    code = error.code or 500
    answer = error_response(code, _WORDS.get(code, str(error.name).lower()))
    if isinstance(error, exceptions.MethodNotAllowed) and error.valid_methods:
        answer.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return answer


def _fault(_: Exception) -> flask.Response:
    _log.error("page failed", path=flask.request.path, exc_info=True)
    return error_response(500, "something went wrong here; the controller's log says what")
