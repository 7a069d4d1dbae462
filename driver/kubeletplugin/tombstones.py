"""Claims that were let go before they were ever prepared, remembered for a minute (F-4).

The kubelet's sweep may unprepare a claim while its Prepare is still on the way to us. That finds no
record; set up afterwards, the claim would keep its GPU: the kubelet would not unprepare it again.

A Prepare can be late, or it can be the first of the next pod that has the same claim: only the API
server tells them apart, and only after it has had the time to free what the gone pod reserved. So
a Prepare after such an Unprepare waits until SETTLE_S have passed, and then must find the claim
reserved by more than our hold. Refused at once, the next pod would lose a minute, until the
kubelet's next try.

Prepares that run are no concern of this: they and Unprepare hold the claim in turn, and Unprepare
has them stop. Memory is enough: a process that ends breaks off the calls that it was sent. Not
covered is a call that goes on, unanswered in its time, in the other plugin of a rolling update.
"""

import threading

from driver import clock, ids
from driver.kubeletplugin import ports

KEPT_S = 60.0
"""Longer than a call of the kubelet lives (45 s)."""
SETTLE_S = 5.0
MOST = 4096
"""Marks at once; the oldest goes first."""
_POLL_S = 0.1


class Tombstones:
    """Marks by claim UID, newest last. Thread safe."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._lock = threading.Lock()
        self._marks: dict[ids.ClaimUid, float] = {}

    def put(self, uid: ids.ClaimUid) -> None:
        """The claim was let go, and nothing of it was here."""
        now = self._clock.monotonic()
        with self._lock:
            self._marks.pop(uid, None)
            while self._marks and self._is_spent(next(iter(self._marks)), now):
                del self._marks[next(iter(self._marks))]
            self._marks[uid] = now

    def marked(self, uid: ids.ClaimUid) -> bool:
        """Whether it was let go within the last KEPT_S."""
        return self._age_s(uid) < KEPT_S

    def settle(self, uid: ids.ClaimUid, cancelled: ports.Cancelled) -> None:
        """Return once the mark, where there is one, is SETTLE_S old, or the caller has gone."""
        while self._age_s(uid) < SETTLE_S and not cancelled():
            self._clock.wait(threading.Event(), _POLL_S)

    def _age_s(self, uid: ids.ClaimUid) -> float:
        with self._lock:
            at = self._marks.get(uid)
        return float("inf") if at is None else self._clock.monotonic() - at

    def _is_spent(self, uid: ids.ClaimUid, now: float) -> bool:
        return now - self._marks[uid] >= KEPT_S or len(self._marks) >= MOST
