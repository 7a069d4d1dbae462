"""Claims unprepared before they were ever prepared, remembered for a minute (F-4).

The kubelet's sweep may unprepare a claim while its Prepare is still on the way. No record is found;
set up afterwards, the claim would keep its GPU: the kubelet would not unprepare it again.

A Prepare can be late, or it can be the first of the next pod that has the same claim: only the API
server tells them apart, and only after it has had time to free what the gone pod reserved. So a
Prepare after such an Unprepare waits until SETTLE_S have passed, and then must find the claim
reserved by more than our hold. If refused at once, the next pod would wait a minute, until the
kubelet's next try.

Running Prepares are not affected: they and Unprepare hold the claim in turn, and Unprepare cancels
them. Memory is enough: a process that ends breaks off its calls. Not covered: a call that runs on,
unanswered in time, in the other plugin of a rolling update.
"""

import threading

from driver import clock, ids
from driver.kubeletplugin import ports

LIFETIME_S = 60.0
"""Longer than a call of the kubelet lives (45 s)."""
SETTLE_S = 5.0
MAX_TOMBSTONES = 4096
"""The oldest is dropped first."""
_POLL_S = 0.1


class Tombstones:
    """Tombstones by claim UID, newest last. Thread safe."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._lock = threading.Lock()
        self._marks: dict[ids.ClaimUid, float] = {}

    def add(self, uid: ids.ClaimUid) -> None:
        """Record that the claim was unprepared while it had no record here."""
        now = self._clock.monotonic()
        with self._lock:
            self._marks.pop(uid, None)
            while self._marks and self._is_expired(next(iter(self._marks)), now):
                del self._marks[next(iter(self._marks))]
            self._marks[uid] = now

    def is_marked(self, uid: ids.ClaimUid) -> bool:
        """Return whether the claim was unprepared within the last LIFETIME_S."""
        return self._age_s(uid) < LIFETIME_S

    def wait_settled(self, uid: ids.ClaimUid, cancelled: ports.Cancelled) -> None:
        """Wait until the claim's tombstone is SETTLE_S old, or the caller has gone."""
        while self._age_s(uid) < SETTLE_S and not cancelled():
            self._clock.wait(threading.Event(), _POLL_S)

    def _age_s(self, uid: ids.ClaimUid) -> float:
        with self._lock:
            timestamp = self._marks.get(uid)
        return float("inf") if timestamp is None else self._clock.monotonic() - timestamp

    def _is_expired(self, uid: ids.ClaimUid, now: float) -> bool:
        return now - self._marks[uid] >= LIFETIME_S or len(self._marks) >= MAX_TOMBSTONES
