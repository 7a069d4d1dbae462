"""A watch: frames as chunks of one answer, bookmarks between them, and how it breaks."""

import http.server
import json
from typing import Any

from driver import clock
from tests.fakes.apiserver import faults, rules, selectors, state, storage, target

Object = dict[str, Any]
_TICK_S = 0.02
CLOCK = clock.SystemClock()


def selection(request: faults.Request) -> tuple[str, str]:
    return request.query.get("fieldSelector", ""), request.query.get("labelSelector", "")


class Stream:
    """One watch request from its first byte to its last."""

    def __init__(
        self,
        door: http.server.BaseHTTPRequestHandler,
        shared: state.State,
        position: target.Target,
        request: faults.Request,
    ) -> None:
        self._door = door
        self._state = shared
        self._place = position
        self._request = request
        self._version = int(request.query.get("resourceVersion") or 0)

    def run(self, fault: faults.Fault | None) -> None:
        self._state.storage.since(self._place.kind, self._version)  # may refuse with 410
        door = self._door
        door.send_response(200)
        door.send_header("Content-Type", "application/json")
        door.send_header("Transfer-Encoding", "chunked")
        door.end_headers()
        door.wfile.flush()
        match fault:
            case faults.Silence():
                self._state.closed.wait()
                door.close_connection = True
                return
            case faults.Cut():
                self._chunk(b'{"type": "ADDED", "obj')
                door.close_connection = True
                return
            case faults.Frame(line):
                self._chunk(line + b"\n")
            case _:
                pass
        if not isinstance(fault, faults.End):
            self._pump()
        door.wfile.write(b"0\r\n\r\n")
        door.wfile.flush()

    def _pump(self) -> None:
        """Send changes and bookmarks until the client's own time-out or the server's end."""
        seconds = float(self._request.query.get("timeoutSeconds") or 1800)
        end = CLOCK.monotonic() + seconds
        bookmark_at = CLOCK.monotonic() + self._state.bookmark_s
        store: storage.Storage = self._state.storage
        while not self._state.closed.is_set() and CLOCK.monotonic() < end:
            with store.changed:
                changes, upto = self._changes()
                if changes is None:
                    return
                if not changes:
                    store.changed.wait(_TICK_S)
            for change in changes:
                self._send_change(change)
            self._version = max(self._version, upto)
            if CLOCK.monotonic() >= bookmark_at:
                bookmark_at = CLOCK.monotonic() + self._state.bookmark_s
                mark = {"metadata": {"resourceVersion": str(self._version)}}
                self._frame("BOOKMARK", {**self._place.typed(), **mark})

    def _changes(self) -> tuple[list[storage.Change] | None, int]:
        """Return what is new, and the version up to which that is all; None after the 410 frame."""
        store: storage.Storage = self._state.storage
        try:
            return store.since(self._place.kind, self._version), store.version
        except rules.Refusal as e:
            self._frame("ERROR", e.status())
            return None, self._version

    def _send_change(self, change: storage.Change) -> None:
        old, new = self._seen(change.old), self._seen(change.new)
        if new is not None:
            named = {**self._place.typed(), **new}
            self._frame("MODIFIED" if old is not None else "ADDED", named)
        elif old is not None:
            gone = {
                **self._place.typed(),
                **old,
                "metadata": {**old["metadata"], "resourceVersion": str(change.version)},
            }
            self._frame("DELETED", gone)

    def _seen(self, obj: Object | None) -> Object | None:
        """The object as far as this watch is concerned: an unselected one does not exist."""
        if obj is None or not selectors.matches(obj, *selection(self._request)):
            return None
        namespace = obj["metadata"].get("namespace", "")
        return obj if self._place.namespace in {None, namespace} else None

    def _frame(self, kind: str, obj: Object) -> None:
        self._chunk(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    def _chunk(self, data: bytes) -> None:
        self._door.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self._door.wfile.flush()
