"""Recent events of this process, for the timeline without a request to the API server."""

import collections
import datetime as dt
import threading
from typing import NamedTuple

from driver import clock
from driver.kube.events import recorder as event_recorder
from driver.scheduling.reports import model

CAPACITY = 1000


class _Entry(NamedTuple):
    """An event; its document would be several times as large."""

    timestamp: dt.datetime
    repeats: int
    regarding: event_recorder.ObjectRef
    reason: str
    message: str
    warning: bool

    def is_same(self, other: "_Entry") -> bool:
        """Return whether it differs in time and count alone."""
        return self[2:] == other[2:]

    def document(self) -> model.Moment:
        """Return it as the API's document."""
        return model.Moment(
            at=clock.rfc3339(self.timestamp),
            reason=self.reason,
            warning=self.warning,
            kind=self.regarding.kind,
            namespace=self.regarding.namespace,
            name=self.regarding.name,
            message=self.message,
            count=self.repeats,
        )


class RecentEvents:
    """Forwards events to a recorder and keeps the last of them. Thread safe."""

    def __init__(self, recorder: event_recorder.Recorder, time: clock.Clock) -> None:
        self._recorder = recorder
        self._clock = time
        self._lock = threading.Lock()
        self._entries: collections.deque[_Entry] = collections.deque(maxlen=CAPACITY)

    def event(
        self,
        regarding: event_recorder.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: event_recorder.ObjectRef | None = None,
    ) -> None:
        """Forward and record an event; repetitions are counted."""
        entry = _Entry(self._clock.now(), 1, regarding, reason, message, warning)
        with self._lock:
            last = self._entries[0] if self._entries else None
            if last is not None and last.is_same(entry):
                self._entries[0] = entry._replace(repeats=last.repeats + 1)
            else:
                self._entries.appendleft(entry)
        self._recorder.event(regarding, reason, message, warning=warning, related=related)

    def newest(self) -> tuple[model.Moment, ...]:
        """Return the events, newest first."""
        with self._lock:
            entries = tuple(self._entries)
        return tuple(entry.document() for entry in entries)
