"""What this process has told of as events, kept for the timeline: nobody has to be asked for it."""

import collections
import threading

from driver import clock
from driver.controller import ports
from driver.controller.reports import model
from driver.kube import events

KEPT = 1000


class Moments:
    """Passes events on to a recorder and remembers the last of them. Thread safe."""

    def __init__(self, recorder: ports.Recorder, time: clock.Clock) -> None:
        self._recorder = recorder
        self._clock = time
        self._lock = threading.Lock()
        self._kept: collections.deque[model.Moment] = collections.deque(maxlen=KEPT)

    def event(
        self,
        regarding: events.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: events.ObjectRef | None = None,
    ) -> None:
        """Tell it, and remember it; the same again is counted."""
        told = model.Moment(
            at=clock.rfc3339(self._clock.now()),
            reason=reason,
            warning=warning,
            kind=regarding.kind,
            namespace=regarding.namespace,
            name=regarding.name,
            message=message,
        )
        with self._lock:
            last = self._kept[0] if self._kept else None
            if last is not None and _same(last, told):
                self._kept[0] = told.model_copy(update={"count": last.count + 1})
            else:
                self._kept.appendleft(told)
        self._recorder.event(regarding, reason, message, warning=warning, related=related)

    def newest(self) -> tuple[model.Moment, ...]:
        """The newest first."""
        with self._lock:
            return tuple(self._kept)


def _same(one: model.Moment, other: model.Moment) -> bool:
    """But for when it was."""
    return one.model_copy(update={"at": other.at, "count": other.count}) == other
