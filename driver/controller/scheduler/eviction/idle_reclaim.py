"""GPUs that do nothing: told, or taken back, as the queue of their pods wants it (D7)."""

import structlog

from driver import reasons
from driver.controller.commit import object_writer, write_pool
from driver.controller.informers import stores
from driver.controller.scheduler import state
from driver.resources import durations, queues
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.preemption import faulty, idle, victims
from driver.scheduling.queues import engine

_log = structlog.get_logger(__name__)
_AGAIN_S = 60.0
"""What was evicted and is still there is looked at again."""


class IdleReclaim:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.SchedulerContext,
        fair: engine.QueueEngine,
        book: victims.VictimIndex,
        hands: object_writer.ObjectWriter,
    ) -> None:
        self._known = known
        self._engine = fair
        self._book = book
        self._hands = hands
        self._told: dict[victims.VictimKey, str] = {}

    def reconcile(self, claim: claims.Claim) -> float | None:
        """Do what is due for the pods of a claim; seconds until it is to be looked at again."""
        if not any(one.activity is not None for one in claim.said):
            return None
        waits = [
            self._unit(key) for key in sorted({victims.victim_key(p) for p in self._users(claim)})
        ]
        return min((one for one in waits if one is not None), default=None)

    def _users(self, claim: claims.Claim) -> list[pods.Pod]:
        there = stores.claim_users(self._known.stores, claim.key)
        return [one for one in there if one.node and not one.deleting]

    def _unit(self, key: victims.VictimKey) -> float | None:
        unit = self._book.all_victims(self._known.refresh_view()).get(key)
        if unit is None:
            return None
        leaf = self._engine.pod_queue(unit.pods[0].pod)
        wanted = self._engine.queue(leaf).idle
        since = idle.idle_since(unit, self._known.stores.claims.get) if wanted is not None else None
        if wanted is None or since is None:
            self._told.pop(key, None)
            return None
        idle_s = (self._known.clock.now() - since).total_seconds()
        if idle_s < wanted.after_s:
            return wanted.after_s - idle_s
        return self._act(unit, leaf, wanted, idle_s)

    def _act(
        self, unit: victims.Victim, leaf: str, wanted: queues.IdleReclaim, idle_s: float
    ) -> float | None:
        """Told once; evicted until it is gone, unless nobody would make it again."""
        words = (
            f"{unit.description} did nothing with its GPUs for {durations.text(idle_s)}; "
            f"queue {leaf} allows {durations.text(wanted.after_s)}"
        )
        stays = faulty.irreplaceable_reason(unit)
        if wanted.action == "evict" and not stays:
            _log.info("idle", unit=unit.name, idle_s=idle_s)
            self._tell(unit, reasons.Reason.IDLE_EVICTED, f"Evicted: {words}")
            return _AGAIN_S
        said = f"{words}: {stays}" if wanted.action == "evict" else words
        if self._told.get(unit.key) != leaf:
            self._told[unit.key] = leaf
            self._tell(unit, reasons.Reason.IDLE, said)
        return None

    def _tell(self, unit: victims.Victim, reason: reasons.Reason, words: str) -> None:
        for one in unit.pods:
            found = stores.pod_claims(self._known.stores, one.pod)
            if reason is reasons.Reason.IDLE_EVICTED:
                item = write_pool.WorkItem("claim", found[0].key) if found else write_pool.WAKE
                self._hands.evict(item, one.pod, found, reason, words)
            else:
                self._hands.warn(one.pod, found, reason, words)
