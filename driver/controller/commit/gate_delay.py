"""Delay of the scheduling gate's removal in a burst of pods."""

import math
import threading
from dataclasses import dataclass

from driver import clock

BURST_S = 0.1
"""Pods behind our gate whose claims are written within this of each other are a burst."""
LEAD_S = 0.05
"""Head start of a claim's allocation over its pod's gate in a burst."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A pod behind our gate: when it began. `follows`: within `BURST_S` of another."""

    began_s: float
    follows: bool


class GateDelay:
    """Thread safe. Delays a gate's removal where another pod is allocated at the same time.

    kube-scheduler watches claims and pods apart. In a burst it sees a pod without its gate ahead of
    the claim's allocation now and then, evaluates every node in vain and tries the pod again a
    second later (ADR 25). That can be the first pod of a burst too, so a pod waits for those after
    it as for those before it (ADR 26). A pod that comes alone does not wait.
    """

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._lock = threading.Lock()
        self._last = Turn(-math.inf, follows=False)

    def begin(self) -> Turn:
        """Begin a pod's turn, before its claims are written."""
        with self._lock:
            now_s = self._clock.monotonic()
            self._last = Turn(now_s, follows=now_s - self._last.began_s < BURST_S)
            return self._last

    def wait(self, turn: Turn) -> None:
        """Give kube-scheduler time to learn of an allocation that was just written, in a burst."""
        if turn.follows or turn is not self._last:
            self._clock.wait(threading.Event(), LEAD_S)
