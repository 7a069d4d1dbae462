"""One HTTP request: parse it, let a fault happen, do what it asks, record it."""

import http.server
import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.apiserver import (
    faults,
    patches,
    rules,
    selectors,
    state,
    storage,
    streams,
    target,
)

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Handler(http.server.BaseHTTPRequestHandler):
    """Speaks HTTP/1.1 with kept connections."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_: object) -> None:
        """Tests look at `requests` instead."""

    @property
    def state(self) -> state.State:
        return self.server.state  # type: ignore[attr-defined,no-any-return]

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Every verb (`do_GET` and so on) comes in by the same door."""
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def _handle(self) -> None:
        request = self._parsed()
        self.state.requests.append(request)
        fault = self.state.faults.next_for(request)
        match fault:
            case faults.Drop():
                self.close_connection = True
                return
            case faults.HalfOpen():
                self.state.closed.wait()
                self.close_connection = True
                return
            case faults.Delay(seconds):
                self.state.closed.wait(seconds)
            case _:
                pass
        try:
            self._answer(request, fault)
        except rules.Refusal as e:
            self._send(e.code, e.status(), e.retry_after_s)

    def _parsed(self) -> faults.Request:
        url = urllib.parse.urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        return faults.Request(
            self.command,
            url.path,
            dict(urllib.parse.parse_qsl(url.query)),
            json.loads(raw) if raw else None,
            dict(self.headers.items()),
            streams.CLOCK.monotonic(),
            raw,
        )

    def _answer(self, request: faults.Request, fault: faults.Fault | None) -> None:
        if isinstance(fault, faults.Answer):
            raise rules.Refusal(fault.status, fault.reason, fault.message, fault.retry_after_s)
        self._admit(request)
        if request.path == "/version":
            major, minor, _ = self.state.git_version.removeprefix("v").split(".", 2)
            info = {"major": major, "minor": minor, "gitVersion": self.state.git_version}
            self._send(200, info)
            return
        if request.path in self.state.texts:
            self._send_text(self.state.texts[request.path])
            return
        position = target.of(request.path)
        if request.is_watch:
            streams.Stream(self, self.state, position, request).run(fault)
            return
        if position.subresource in {"log", "proxy"}:
            self._send_text(_answered_at(request, self.state.texts))
            return
        code, body = self._act(request, position)
        self._send(code, body)

    def _admit(self, request: faults.Request) -> None:
        tokens = self.state.tokens
        name = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if tokens is not None and name not in tokens:
            raise rules.Refusal(401, "Unauthorized", "Unauthorized")
        if not faults.writes(request):
            return
        for policy in self.state.policies:
            refusal = policy(request)
            if refusal is not None:
                raise rules.Refusal(403, "Forbidden", refusal)

    def _act(self, request: faults.Request, position: target.Target) -> tuple[int, Object]:
        match request.method:
            case "GET" if position.name:
                return 200, self.state.storage.get(position.kind, position.key)
            case "GET":
                return 200, self._list(request, position)
            case "POST":
                return 201, self._create(position, _body(request))
            case "PUT":
                return 200, self._replace(position, _body(request))
            case "PATCH":
                return 200, self._patch(request, position)
            case _:
                expected = request.body.get("preconditions") if request.body else None
                return 200, self.state.storage.delete(position.kind, position.key, expected)

    def _create(self, position: target.Target, body: Object) -> Object:
        if position.kind == ("authorization.k8s.io", "subjectaccessreviews"):
            resource_attributes = body["spec"]["resourceAttributes"]
            right = f"{resource_attributes['verb']} {resource_attributes['resource']}"
            return {**body, "status": {"allowed": right not in self.state.lacking}}
        if position.subresource != "eviction":
            return self.state.storage.create(position.kind, position.namespace or "", body)
        preconditions = body.get("deleteOptions", {}).get("preconditions")
        self.state.storage.delete(position.kind, position.key, preconditions)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _replace(self, position: target.Target, body: Object) -> Object:
        if not body.get("metadata", {}).get("resourceVersion"):
            text = "metadata.resourceVersion: must be specified for an update"
            raise rules.Refusal(422, "Invalid", text)
        return self.state.storage.update(
            position.kind, position.key, lambda _: body, position.subresource
        )

    def _patch(self, request: faults.Request, position: target.Target) -> Object:
        store, body = self.state.storage, request.body
        kind = request.headers.get("Content-Type")
        if kind == APPLY:
            return self._apply(request, position, _body(request))

        def change(old: Object) -> Object:
            return _patched(kind, old, body)

        return store.update(position.kind, position.key, change, position.subresource)

    def _apply(self, request: faults.Request, position: target.Target, body: Object) -> Object:
        """Return what is not there is made by its own resource, not by a subresource of it."""
        if not request.field_manager:
            raise rules.Refusal(400, "BadRequest", "fieldManager is required for apply patch")
        force = request.query.get("force") == "true"
        how = storage.Apply(body, f"{request.field_manager}/{position.subresource}", force)
        store = self.state.storage
        if not position.subresource:
            try:
                store.get(position.kind, position.key)
            except rules.Refusal:
                store.create(position.kind, position.namespace or "", body)
        return store.apply(position.kind, position.key, how, position.subresource)

    def _list(self, request: faults.Request, position: target.Target) -> Object:
        token = request.query.get("continue")
        if token is None:
            items, version = self.state.storage.all(position.kind, position.namespace)
            fields, labels = streams.selection(request)
            items = [o for o in items if selectors.matches(o, fields, labels)]
        elif token in self.state.continues:
            items, version = self.state.continues.pop(token)
            if version < self.state.storage.compacted:
                raise rules.Refusal(410, "Expired", "the provided continue parameter is too old")
        else:
            raise rules.Refusal(410, "Expired", "unknown continue token")
        meta = {"resourceVersion": str(version)}
        limit = int(request.query.get("limit") or 0) or len(items)
        if len(items) > limit:
            meta["continue"] = f"after-{len(self.state.requests)}"
            self.state.continues[meta["continue"]] = (items[limit:], version)
        typed = position.typed("List") or {"kind": "List", "apiVersion": "v1"}
        return {**typed, "metadata": meta, "items": items[:limit]}

    def _send(self, code: int, body: Object, retry_after_s: int = 0) -> None:
        self._send_raw(code, json.dumps(body).encode(), "application/json", retry_after_s)

    def _send_text(self, text: str) -> None:
        self._send_raw(200, text.encode(), "text/plain")

    def _send_raw(self, code: int, raw: bytes, form: str, retry_after_s: int = 0) -> None:
        self.send_response(code)
        self.send_header("Content-Type", form)
        self.send_header("Content-Length", str(len(raw)))
        if retry_after_s:
            self.send_header("Retry-After", str(retry_after_s))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()


def _answered_at(request: faults.Request, texts: Mapping[str, str]) -> str:
    """Return the log of a pod at `.../log?container=main` or `.../log?container=main&previous`."""
    question = f"?container={request.query['container']}" if "container" in request.query else ""
    time = f"{request.path}{question}{'&previous' if 'previous' in request.query else ''}"
    if time not in texts:
        raise rules.Refusal(404, "NotFound", f"{time} says nothing")
    return texts[time]


def _body(request: faults.Request) -> Object:
    if isinstance(request.body, dict):
        return request.body
    raise rules.Refusal(400, "BadRequest", f"{request.method} without an object")


def _patched(kind: str | None, old: Object, body: object) -> Object:
    patched: Object
    match kind, body:
        case (c, dict()) if c == MERGE:
            patched = patches.merge(old, body)
        case (c, dict()) if c == STRATEGIC:
            patched = patches.strategic(old, body)
        case (c, list()) if c == JSON_PATCH:
            patched = _json_patched(old, body)
        case _:
            raise rules.Refusal(415, "UnsupportedMediaType", f"patch of type {kind}")
    return patched


def _json_patched(old: Object, operations: list[Object]) -> Object:
    try:
        return patches.json_patch(old, operations)
    except (ValueError, LookupError, TypeError) as e:
        raise rules.Refusal(422, "Invalid", f"the patch does not apply: {e}") from e
