"""The frames of a watch: one JSON object a line, over one answer that does not end."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import urllib3

from driver.kube import gvr
from driver.kube.http import api_errors, json_decode


class EventType(StrEnum):
    """What happened to the object; a BOOKMARK's object holds a resource version only."""

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

    Raises what an ERROR event holds, and Unreachable for a broken, silent or senseless stream.
    """

    def __init__(self, answer: urllib3.HTTPResponse, where: str) -> None:
        self._answer = answer
        self._where = where
        self._events = self._read()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WatchEvent:
        return next(self._events)

    def interrupt(self) -> None:
        """Wake the thread that iterates, from another thread: its stream breaks off."""
        try:
            self._answer.shutdown()
        except (ValueError, RuntimeError, OSError):
            return  # the stream has ended by itself

    def close(self) -> None:
        """Drop the connection; called by the thread that iterates."""
        self._answer.close()

    def _read(self) -> Iterator[WatchEvent]:
        for line in self._lines():
            if line.strip():
                yield self._event(line)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        chunks = self._answer.stream(1 << 16)
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
            frame: Any = json_decode.decode(line)
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
