"""Guards requests: by a token where others can reach the page, by the host name where not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flask

from driver.controller.web import errors as web_errors
from driver.controller.web.auth import rules, token_reviews
from driver.controller.web.render import paths, templates

MAX_BYTES = 16 << 10
"""Of a form: a token, and little else."""
COOKIE = "ration-token"
FORWARDED = "X-Ration-Forwarded"
"""Set on what one replica asks of another: it is not sent on again."""
_MOST_COOKIE = 3800
"""Browsers drop cookies of more than 4096 bytes in silence."""
_OPEN = {"static", "login", "logout"}


@dataclass(frozen=True, slots=True)
class Guard:
    """`reviewer` None: no authentication. `local`: reachable by loopback alone."""

    reviewer: token_reviews.TokenReviewer | None = None
    local: bool = True
    secure: bool = False


def attach(app: flask.Flask, guard: Guard) -> None:
    """Check every request before it is answered."""

    def check() -> Any:  # noqa: ANN401 - what Flask makes answers of
        if guard.local and not rules.is_local_name(flask.request.host):
            return web_errors.error_response(
                403, f"{flask.request.host} is not this page's name: use localhost"
            )
        if guard.reviewer is None or flask.request.endpoint in _OPEN:
            return None
        verdict = guard.reviewer.verdict(token())
        if isinstance(verdict, rules.Allowed):
            return None
        return _not_let_in(verdict)

    app.before_request(check)
    if guard.reviewer is not None:
        app.add_url_rule("/login", "login", lambda: _login(guard), methods=["GET", "POST"])
        app.add_url_rule("/logout", "logout", _logout, methods=["POST"])
        app.jinja_env.globals["knows_callers"] = True


def token() -> str:
    """The token of this request; "" where it has none."""
    return rules.bearer(
        flask.request.headers.get("Authorization", ""), flask.request.cookies.get(COOKIE, "")
    )


def _not_let_in(verdict: rules.Refused) -> Any:  # noqa: ANN401
    if flask.request.path.startswith(paths.API) or flask.request.headers.get("Authorization"):
        answer = web_errors.error_response(verdict.code, verdict.why)
        if verdict.code == _UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = 'Bearer realm="ration"'
        return answer
    if flask.request.headers.get("HX-Request"):
        # A page that reads itself anew goes to the form as a whole.
        return flask.Response(status=204, headers={"HX-Redirect": "/login"})
    why = verdict.why if flask.request.cookies.get(COOKIE) else ""
    return flask.Response(templates.login(why, flask.request.full_path), verdict.code)


_UNAUTHORIZED = 401


def _login(guard: Guard) -> Any:  # noqa: ANN401
    after = _local_path(flask.request.values.get("next", "/"))
    if flask.request.method != "POST":
        return templates.login("", after)
    if flask.request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        return web_errors.error_response(403, "log in from the page's own form")
    token_text = flask.request.form.get("token", "").strip()
    if len(token_text) > _MOST_COOKIE:
        why = "the token is too long for a cookie: send it as `Authorization: Bearer`"
        return flask.Response(templates.login(why, after), 400)
    assert guard.reviewer is not None  # noqa: S101 - there is no form otherwise
    verdict = guard.reviewer.verdict(token_text)
    if isinstance(verdict, rules.Refused):
        return flask.Response(templates.login(verdict.why, after), verdict.code)
    answer = flask.redirect(after, 303)
    answer.set_cookie(COOKIE, token_text, httponly=True, samesite="Strict", secure=guard.secure)
    return answer


def _logout() -> Any:  # noqa: ANN401
    answer = flask.redirect("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="Strict")
    return answer


def _local_path(path: str) -> str:
    """Return a path of this site; the overview for one that leads elsewhere."""
    own = path.startswith("/") and not path.startswith(("//", "/\\", "/login"))
    return path if own and path.isprintable() else "/"


def forward_request(forward: Callable[[str, str], flask.Response | None]) -> flask.Response | None:
    """Return the leader's answer to this request; None if it was forwarded already or failed."""
    if flask.request.headers.get(FORWARDED):
        return None
    return forward(flask.request.full_path.rstrip("?"), token())
