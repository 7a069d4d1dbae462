"""Delay of the scheduling gate's removal in a burst of pods."""

import math
import threading

from driver import clock

BURST_S = 0.1
"""Gates that are removed within this of each other are those of a burst."""
LEAD_S = 0.02
"""Head start of a claim's allocation over its pod's gate in a burst."""


class GateDelay:
    """Thread safe. Waits before a gate is removed, where another was within `BURST_S`.

    kube-scheduler watches claims and pods apart. In a burst it sees a pod without its gate ahead of
    the claim's allocation now and then, evaluates every node in vain and tries the pod again a
    second later (ADR 25). A pod that comes alone does not wait.
    """

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._last = -math.inf

    def wait(self) -> None:
        """Give kube-scheduler time to learn of an allocation that was just written."""
        earlier, self._last = self._last, self._clock.monotonic()
        if self._last - earlier < BURST_S:
            self._clock.wait(threading.Event(), LEAD_S)
