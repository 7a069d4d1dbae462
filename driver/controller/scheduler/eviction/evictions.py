"""Requests the evictions of a Reservation's victims until they are gone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver import ids, reasons
from driver.controller.commit import workload_writer, write_pool
from driver.controller.informers import stores
from driver.controller.scheduler import state
from driver.resources import reservations
from driver.resources.core import pods
from driver.scheduling.reservations import term

RETRY_S = 5.0
"""Until a pod is asked again to leave."""


@dataclass(frozen=True, slots=True)
class EvictionMessages:
    """Message per victim, and the common reason."""

    by_uid: Mapping[ids.PodUid, str] = field(default_factory=dict)
    reason: reasons.Reason = reasons.Reason.PREEMPTED


_NOTHING = EvictionMessages()


class EvictionRequester:
    """On the decider's thread."""

    def __init__(
        self, context: state.SchedulerContext, hands: workload_writer.WorkloadWriter
    ) -> None:
        self._context = context
        self._writer = hands
        self._messages: dict[ids.Key, EvictionMessages] = {}
        self._retry_at: dict[ids.PodUid, float] = {}

    def set_messages(self, reservation: ids.Key, words: EvictionMessages) -> None:
        """Store the messages of a Reservation's victims; a new leader knows only the holder."""
        self._messages[reservation] = words

    def forget(self, reservation: ids.Key) -> None:
        """Forget a deleted Reservation."""
        self._messages.pop(reservation, None)

    def evict_victims(
        self, item: write_pool.WorkItem, reservation: reservations.Reservation
    ) -> None:
        """Evict the remaining victims; `item` is retried where that is refused."""
        for victim in reservation.evicting:
            pod = self._context.stores.pods.get(victim.key)
            if pod is None or pod.uid != victim.uid or pod.deleting or pod.finished:
                continue
            words = self._messages.get(reservation.key, _NOTHING)
            for_whom = (
                f"Evicted for {reservations.describe_holder(reservation.holder)}, which waits"
            )
            self._evict(item, pod, words.by_uid.get(victim.uid, for_whom), words.reason)

    def evict_overrun(
        self,
        item: write_pool.WorkItem,
        reservation: reservations.Reservation,
        users: Iterable[pods.Pod],
    ) -> None:
        """Evict pods that exceeded their declared run time on reserved devices."""
        now = self._context.clock.now()
        for pod in users:
            if pod.node and not pod.deleting and term.ends_by(pod, now, now):
                limit = f"{pod.max_runtime_s:.0f} s at most"
                words = f"Evicted: it said that it runs {limit}, and its devices"
                message = (
                    f"{words} are reserved for {reservations.describe_holder(reservation.holder)}"
                )
                self._evict(item, pod, message, reasons.Reason.PREEMPTED)

    def _evict(
        self, item: write_pool.WorkItem, pod: pods.Pod, words: str, reason: reasons.Reason
    ) -> None:
        """Evict a pod unless it was requested within `RETRY_S`."""
        now = self._context.clock.monotonic()
        self._retry_at = {uid: end for uid, end in self._retry_at.items() if end > now}
        if pod.uid in self._retry_at:
            return
        self._retry_at[pod.uid] = now + RETRY_S
        pod_claims = stores.pod_claims(self._context.stores, pod)
        self._writer.evict(item, pod, pod_claims, reason, words)
