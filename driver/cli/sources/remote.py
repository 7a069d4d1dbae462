"""Documents of the controller's JSON API, over HTTP: at a URL, or through a tunnel to its pod."""

import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pydantic

from driver import errors
from driver.cli import errors as cli_errors
from driver.scheduling.reports import model, selection

T = TypeVar("T", bound=model.Document)
P = TypeVar("P", bound=model.Page)
Get = Callable[[str], tuple[int, bytes]]
"""GET of a path with its query: the status and the body. Raises Unreachable."""
_FOUND, _UNAUTHORIZED, _FORBIDDEN, _MISSING = 200, 401, 403, 404
_ERRORS: Mapping[int, type[errors.ApiError]] = {
    _UNAUTHORIZED: errors.Unauthorized,
    _FORBIDDEN: errors.Forbidden,
}


class Remote:
    """The reports of a controller, each asked for when it is wanted."""

    def __init__(self, get: Get) -> None:
        self._get = get

    def fleet(self) -> model.Fleet:
        """All of it in figures."""
        return self._must(model.Fleet, "fleet")

    def nodes(
        self,
        part: selection.PageRequest = selection.ALL,
        node_filter: selection.NodeFilter = selection.ANY,
    ) -> model.Nodes:
        """Nodes with GPUs."""
        requested = {"name": node_filter.name, "product": node_filter.product}
        requested |= {"mode": node_filter.mode, "health": node_filter.health}
        return self._list(model.Nodes, "nodes", requested, part)

    def node(self, name: str) -> model.Node | None:
        """One node with GPUs."""
        return self._one(model.Node, f"nodes/{_quoted(name)}")

    def claims(
        self, namespace: str = "", part: selection.PageRequest = selection.ALL
    ) -> model.Claims:
        """Claims that concern us."""
        return self._list(model.Claims, "claims", {"namespace": namespace}, part)

    def claim(self, key: str) -> model.Claim | None:
        """One claim."""
        return self._one(model.Claim, f"claims/{_quoted(key)}")

    def waiting(
        self, namespace: str = "", part: selection.PageRequest = selection.ALL
    ) -> model.Pods:
        """Pods that have not got their devices."""
        return self._list(model.Pods, "waiting", {"namespace": namespace}, part)

    def pods(self, namespace: str = "", part: selection.PageRequest = selection.ALL) -> model.Pods:
        """Pods that concern us."""
        return self._list(model.Pods, "pods", {"namespace": namespace}, part)

    def pod(self, key: str) -> model.Pod | None:
        """One pod, explained."""
        return self._one(model.Pod, f"pods/{_quoted(key)}")

    def queues(self) -> model.Queues:
        """Queues."""
        return self._must(model.Queues, "queues")

    def reservations(self) -> model.Reservations:
        """Reservations."""
        return self._must(model.Reservations, "reservations")

    def shapes(self) -> model.Shapes:
        """Kinds of node that can be asked for."""
        return self._must(model.Shapes, "shapes")

    def _must(self, kind: type[T], path: str) -> T:
        result = self._one(kind, path)
        if result is None:
            raise errors.NotFound(_MISSING, cli_errors.CONTROLLER, f"there is no /api/v1/{path}")
        return result

    def _one(self, kind: type[T], path: str, query: Mapping[str, str] | None = None) -> T | None:
        message = {key: value for key, value in (query or {}).items() if value}
        tail = f"?{urllib.parse.urlencode(message)}" if message else ""
        code, body = self._get(f"/api/v1/{path}{tail}")
        if code == _MISSING:
            return None
        if code != _FOUND:
            raise _ERRORS.get(code, errors.ServerError)(code, cli_errors.CONTROLLER, _words(body))
        try:
            return kind.model_validate_json(body)
        except pydantic.ValidationError as error:
            raise errors.ServerError(
                code,
                cli_errors.CONTROLLER,
                f"its answer to /api/v1/{path} is no {kind.__name__}: is it of another version?",
            ) from error

    def _list(
        self, kind: type[P], path: str, query: Mapping[str, str], part: selection.PageRequest
    ) -> P:
        """All of a list where all is wanted, part by part."""
        requested = {**query, "limit": str(part.limit), "continue": part.after}
        result = self._one(kind, path, requested)
        if result is None:
            raise errors.NotFound(_MISSING, cli_errors.CONTROLLER, f"there is no /api/v1/{path}")
        items: list[Any] = [*result.items]  # type: ignore[attr-defined]
        while result.next and part == selection.ALL:
            more = self._one(kind, path, {**requested, "continue": result.next})
            if more is None:
                break
            result = more
            items += more.items  # type: ignore[attr-defined]
        return result.model_copy(update={"items": tuple(items)})


def _quoted(key: str) -> str:
    return urllib.parse.quote(key)


def _words(body: bytes) -> str:
    """Return the controller's message: `{"error": ...}`, or the first line."""
    try:
        message = json.loads(body)
    except ValueError:
        message = None
    if isinstance(message, dict) and isinstance(message.get("error"), str):
        return str(message["error"])
    return body.decode(errors="replace").strip().partition("\n")[0][:200]
