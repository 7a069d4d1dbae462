"""What the controller shows of itself: reports of its caches, and what it told lately.

Any thread may ask. A look at the caches is kept for a second, so that however many ask, the decider
loses little of its interpreter's time to them.
"""

import collections
import threading
from collections.abc import Callable

from driver import clock, ids
from driver.controller import ports, stores
from driver.controller.allocation import explanation
from driver.controller.reports import explaining, model, reading, seen, timeline
from driver.kube import events

_FRESH_S = 1.0
Answers = Callable[[ids.Key], explanation.Explanation | None]
"""The decider's last answer to a pod (`Reconciler.explained`)."""


class Remembering:
    """A recorder that remembers what it told, the newest `timeline.MOST` of it; passes all on."""

    def __init__(self, recorder: ports.Recorder, time: clock.Clock) -> None:
        self._recorder = recorder
        self._clock = time
        self._lock = threading.Lock()
        self._moments: collections.deque[model.Moment] = collections.deque(maxlen=timeline.MOST)

    def event(
        self,
        regarding: events.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: events.ObjectRef | None = None,
    ) -> None:
        """Tell, and remember."""
        self._recorder.event(regarding, reason, message, warning=warning, related=related)
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
            self._moments.append(told)

    def moments(self) -> tuple[model.Moment, ...]:
        """The newest first."""
        with self._lock:
            return tuple(reversed(self._moments))


class Seeing:
    """Reports of the caches of now, or of a second ago."""

    def __init__(
        self,
        driver: str,
        found: stores.Stores,
        answers: Answers,
        told: Remembering,
        time: clock.Clock,
    ) -> None:
        self._driver = driver
        self._stores = found
        self._answers = answers
        self._told = told
        self._clock = time
        self._lock = threading.Lock()
        self._last: tuple[float, str, seen.Seen] | None = None

    def reading(self) -> reading.Reading:
        """Every report; ask for one of them at once, for it is of a moment."""
        at, found = self._look()
        return reading.Reading(found, at, self._explained, self._told.moments())

    def _explained(self, pod: ids.Key) -> model.Explanation | None:
        last = self._answers(pod)
        return explaining.document(last) if last else None

    def _look(self) -> tuple[str, seen.Seen]:
        with self._lock:
            now = self._clock.monotonic()
            last = self._last
            if last is None or now - last[0] >= _FRESH_S:
                before = last[2] if last else None
                found = seen.Seen(self._objects(), before)
                last = self._last = (now, clock.rfc3339(self._clock.now()), found)
            return last[1], last[2]

    def _objects(self) -> seen.Objects:
        found = self._stores
        return seen.Objects(
            driver=self._driver,
            nodes=found.nodes.snapshot(),
            slices=found.slices.snapshot(),
            classes=found.classes.snapshot(),
            claims=found.claims.snapshot(),
            pods=found.pods.snapshot(),
            rules=found.rules.snapshot(),
            queues=found.teams.snapshot(),
            reservations=found.reserved.snapshot(),
        )
