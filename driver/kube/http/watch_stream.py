"""Frames of a watch: one JSON object per line, over one unending response."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import urllib3

from driver.kube import gvr
from driver.kube.http import api_errors, json_decode


class EventType(StrEnum):
    """Change of an object; a BOOKMARK's object holds a resource version only."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One frame."""

    type: EventType
    object: gvr.Object


class Watch:
    """Iterates over events and ends when the server ends the stream.

    Raises an ERROR event's error, and Unreachable for a broken, silent or invalid stream.
    """

    def __init__(
        self,
        response: urllib3.BaseHTTPResponse,
        path: str,
        bulk: json_decode.Bulk | None = None,
    ) -> None:
        self._response = response
        self._where = path
        self._bulk = bulk
        self._events = self._read()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WatchEvent:
        return next(self._events)

    def interrupt(self) -> None:
        """Break off the stream from another thread, waking the one that iterates."""
        try:
            self._response.shutdown()
        except (ValueError, RuntimeError, OSError):
            return  # the stream has ended by itself

    def close(self) -> None:
        """Close the connection; called by the thread that iterates."""
        self._response.close()

    def _read(self) -> Iterator[WatchEvent]:
        for line in self._lines():
            if line.strip():
                yield self._event(line)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        chunks = self._response.stream(1 << 16)
        while True:
            try:
                chunk = next(chunks, None)
            except (urllib3.exceptions.HTTPError, OSError) as e:
                raise api_errors.unreachable("WATCH", self._where, e) from e
            if chunk is None:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
        yield rest

    def _event(self, line: bytes) -> WatchEvent:
        try:
            frame: Any = json_decode.decode(line, self._bulk)
            kind, obj = frame["type"], frame["object"]
            if kind == "ERROR":
                raise api_errors.from_status(obj)
            event = WatchEvent(EventType(kind), obj)
            gvr.object_version(obj)
            if event.type is not EventType.BOOKMARK:
                gvr.object_key(obj)
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise api_errors.unreachable("WATCH", self._where, e) from e
        return event
