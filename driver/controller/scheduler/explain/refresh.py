"""Refreshes the messages of pending pods when the cluster changes, bounded in age and rate.

A first message and a changed reason are reported at once. A change in the rest (counts, nearest
fit, holders, plans) is reported within a minute, per pod at most every `REFRESH_S`.
"""

from collections.abc import Collection
from dataclasses import dataclass

from driver import clock, ids
from driver.scheduling.snapshot import cluster_state

REFRESH_S = 30.0
"""A pod's words are looked at again no more often."""
REFRESHES_PER_S = 5.0
"""Pods whose words are looked at again in a second, on average: past 150 waiting, age grows."""
_BURST = 100.0
_SPARE = 64


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A message, the monotonic time at which it last held, and the view's revision then."""

    text: str
    time: float
    mark: int


class MessageRefresh:
    """On the decider's thread."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._recorded: dict[ids.PodUid, _Recorded] = {}
        self._tokens = _BURST
        self._filled = time.monotonic()
        self._is_behind = False

    @property
    def is_behind(self) -> bool:
        """True if messages of an older view were not refreshed since the last pass began."""
        return self._is_behind

    def begin_pass(self) -> None:
        """Begin a pass over all pending workloads."""
        self._is_behind = False

    def is_due(self, uid: ids.PodUid, view: cluster_state.ClusterState) -> bool:
        """Return whether to rebuild a pod's message now; True consumes a token."""
        spoken = self._recorded.get(uid)
        if spoken is None or spoken.mark == view.revision:
            return False
        moment = self._clock.monotonic()
        self._tokens = min(_BURST, self._tokens + REFRESHES_PER_S * (moment - self._filled))
        self._filled = moment
        if moment - spoken.time < REFRESH_S or self._tokens < 1.0:
            self._is_behind = True
            return False
        self._tokens -= 1.0
        return True

    def record(self, uid: ids.PodUid, text: str, view: cluster_state.ClusterState) -> bool:
        """Record that a message holds in a view; True if it changed."""
        last = self._recorded.get(uid)
        self._recorded[uid] = _Recorded(text, self._clock.monotonic(), view.revision)
        return last is None or last.text != text

    def prune(self, uids: Collection[ids.PodUid]) -> None:
        """Forget all other pods once there are many."""
        if len(self._recorded) > 2 * len(uids) + _SPARE:
            self._recorded = {uid: spoken for uid, spoken in self._recorded.items() if uid in uids}
