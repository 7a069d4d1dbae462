"""Delay of the scheduling gate's removal in a burst of pods."""

import math
import threading
from dataclasses import dataclass

from driver import clock

BURST_S = 0.1
"""Pods behind our gate whose decisions are written within this of each other are a burst."""
LEAD_S = 0.05
"""Head start of a claim's allocation over its pod's gate in a burst."""


class GateDelay:
    """Thread safe. Delays a gate's removal where another pod is allocated at the same time.

    kube-scheduler watches claims and pods apart. In a burst it sees a pod without its gate ahead of
    the claim's allocation now and then, evaluates every node in vain and tries the pod again a
    second later (ADR 25). It is the first pods of a burst as well (ADR 26), so those that follow a
    pod count as those before it. A pod that comes alone does not wait.
    """

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._lock = threading.Lock()
        self._last = -math.inf
        self._begun = 0

    def begin(self) -> "HeadStart":
        """Count a pod behind our gate, before its claims are written."""
        with self._lock:
            earlier, self._last = self._last, self._clock.monotonic()
            self._begun += 1
            return HeadStart(self, self._begun, self._last - earlier < BURST_S)

    def wait(self, pod: "HeadStart") -> None:
        """Give kube-scheduler time to learn of an allocation that was just written, in a burst."""
        if pod.follows or self._begun > pod.number:
            self._clock.wait(threading.Event(), LEAD_S)


@dataclass(frozen=True, slots=True)
class HeadStart:
    """A pod whose claims are written. `follows`: another was begun within `BURST_S` before it."""

    delay: GateDelay
    number: int
    follows: bool

    def wait(self) -> None:
        """Return when the pod's gate can be removed."""
        self.delay.wait(self)
