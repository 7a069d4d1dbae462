"""Reservations: what they hold is kept in the picture, given to their holders, and given back."""

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import structlog

from driver import clock, ids, reasons
from driver.controller.commit import object_writer, write_pool
from driver.controller.informers import stores
from driver.controller.scheduler import pending as scheduler_pending
from driver.controller.scheduler import queue_usage, state
from driver.controller.scheduler.eviction import evictions
from driver.controller.scheduler.provisioner import arrived_capacity
from driver.resources import reservations
from driver.resources.core import pods
from driver.scheduling.allocator import settings
from driver.scheduling.explain import holders
from driver.scheduling.gangs import messages as seating_words
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.reservations import device_plan, term
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)
_AGAIN_S = 30.0
PREEMPT, REPLACE = "preempt-", "replace-"
"""Begin the names of the controller's own; the latter are for those who go for them."""
_REMADE_S = 60.0
"""Within it the owner of a pod that goes makes the next one."""
_OVER = frozenset({"Used", "Expired"})
_REASONS = {
    "Pending": reasons.Reason.RESERVATION_PENDING,
    "Held": reasons.Reason.RESERVATION_HELD,
    "Used": reasons.Reason.RESERVATION_USED,
    "Expired": reasons.Reason.RESERVATION_EXPIRED,
}
QueueOf = Callable[[pods.Pod], str]


class ReservationController:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.SchedulerContext,
        hands: object_writer.ObjectWriter,
        charges: queue_usage.QueueUsage,
        deciding: settings.Settings,
        leaf_of: QueueOf,
        brought: arrived_capacity.ArrivedCapacity,
    ) -> None:
        self._known = known
        self._hands = hands
        self._charges = charges
        self._deciding = deciding
        self._leaf_of = leaf_of
        self.arrived = brought
        self._live: dict[ids.Key, reservations.Reservation] = {}
        self._pending: set[ids.Key] = set()
        self._departing = evictions.EvictionRequester(known, hands)

    def set_reservation(self, key: ids.Key, one: reservations.Reservation | None) -> None:
        """A Reservation came, changed or went: what it holds is held in the picture."""
        if one is None:
            gone = self._live.pop(key, None)
            self._pending.discard(key)
            self._departing.forget(key)
            if gone is not None:
                self._hold(gone, ())
            return
        self._live[key] = one
        self._keep(one)

    def _keep(self, one: reservations.Reservation) -> tuple[reservations.Held, ...]:
        """Hold what nobody has used yet; that."""
        left = term.unused_devices(one, self._known.view, self._users(one))
        self._hold(one, left)
        return left

    def _hold(self, one: reservations.Reservation, held: Sequence[reservations.Held]) -> None:
        """What is held counts for the holder's queue; what goes for it, for its own no more."""
        allocation = term.held_allocation(held)
        self._known.view.set_reserved_devices(term.holder_key(one), allocation)
        self._charges.charge_reservation(term.holder_key(one), self._leaf(one), allocation)
        self._charges.exclude_claims(term.holder_key(one), self._claims_of(one) if held else ())

    def _leaf(self, one: reservations.Reservation) -> str:
        """The queue of its holder: of a pod that is there, else of such a pod."""
        there = (
            pod
            for pod in self._known.stores.pods.snapshot().values()
            if pod.namespace == one.namespace and term.may_use(one, pod, "")
        )
        return self._leaf_of(next(there, term.sample_holder(one)))

    def _claims_of(self, one: reservations.Reservation) -> Iterator[ids.Key]:
        """The claims of those that go."""
        for victim in one.evicting:
            pod = self._known.stores.pods.get(victim.key)
            if pod is not None and pod.uid == victim.uid:
                yield from pod.claim_keys

    def _users(self, one: reservations.Reservation) -> Iterator[ids.Key]:
        """The claims of its holder; not of those who go for it."""
        view = self._known.view
        for key in {holder.claim for held in one.held for holder in view.holders(held.device)}:
            if any(
                self._is_holder(one, pod) for pod in stores.claim_users(self._known.stores, key)
            ):
                yield key
        for decision in self._known.memory.in_flight.values():
            if term.may_use(one, decision.pod, self._leaf_of(decision.pod)):
                yield from decision.allocations

    def _is_holder(self, one: reservations.Reservation, pod: pods.Pod) -> bool:
        return pod.uid not in _uids(one) and term.may_use(one, pod, self._leaf_of(pod))

    # What is due.

    def reconcile(self, item: write_pool.WorkItem) -> float | None:
        """Do what is due for a Reservation; seconds until it is to be looked at again."""
        self._known.refresh_view()
        one = self._known.stores.reservations.get(item.key)
        if one is None:
            self.set_reservation(item.key, None)
        if one is None or one.deleting or one.phase in _OVER:
            return None
        now = self._known.clock.now()
        over = self._over(one, self._keep(one), now)
        if over is not None:
            self._end(one, *over)
            return None
        if one.evicting:
            self._evict(item, one)
        elif not one.held:
            self._plan(one, now)
        elif term.start_time(one) <= now:
            self._departing.evict_overrun(item, one, self._others(one))
        until = [
            (moment - now).total_seconds() for moment in (term.end_time(one), term.start_time(one))
        ]
        again_s = evictions.RETRY_S if one.evicting else _AGAIN_S
        return min(each for each in (*until, again_s) if each > 0)

    def _over(
        self,
        one: reservations.Reservation,
        left: Sequence[reservations.Held],
        now: dt.datetime,
    ) -> tuple[str, str] | None:
        """The phase in which it ends now, and why; None: it does not."""
        if one.held and not left:
            return "Used", "every device is used"
        if one.evicting and not self._is_awaited(one, now):
            return "Used", "nobody waits for it any more"
        if now >= term.end_time(one):
            return "Expired", f"nobody used it by {clock.rfc3339(term.end_time(one))}"
        return None

    def _is_awaited(self, one: reservations.Reservation, now: dt.datetime) -> bool:
        """Whether a pod of its holder still has no devices, or is about to be made again.

        What somebody else made is awaited for as long as it lasts.
        """
        if not _is_own(one):
            return True
        if one.name.startswith(REPLACE):
            there = (self._known.stores.pods.get(victim.key) for victim in one.evicting)
            going = any(pod is not None and pod.uid in _uids(one) for pod in there)
            if going or (now - term.start_time(one)).total_seconds() < _REMADE_S:
                return True
        for pod in self._known.stores.pods.snapshot().values():
            mine = pod.namespace == one.namespace and pod.node is None and not pod.finished
            if mine and not pod.deleting and term.may_use(one, pod, ""):
                found = snapshot.pod_claims(pod, self._known.stores.claims.get)
                if found is None or any(claim.allocation is None for claim in found):
                    return True
        return False

    # Of those for which pods go.

    def create_for_eviction(
        self,
        one: reservations.Reservation,
        held: Sequence[reservations.Held],
        said: evictions.EvictionMessages,
    ) -> None:
        """Hold at once, write it, and have the others leave once it is written."""
        self._departing.set_messages(one.key, said)
        self.set_reservation(one.key, replace(one, held=tuple(held)))
        accepted = reservations.accepted(one, "", "", one.created)
        status = reservations.render_status(one, "Held", held, accepted, "")
        self._hands.create_reservation(one.namespace, reservations.render(one), status)

    def evicting_count(self) -> int:
        """For how many pods go now."""
        return sum(1 for one in self._live.values() if one.evicting)

    def has_pending_eviction(self, candidate: scheduler_pending.PendingWorkload) -> bool:
        """Whether pods go for a candidate already."""
        return any(
            one.evicting and term.may_use(one, candidate.first, "") for one in self._live.values()
        )

    def is_victim(self, pod: pods.Pod) -> bool:
        """Whether a pod is to leave for a Reservation."""
        return any(pod.uid in _uids(one) for one in self._live.values())

    def pending_since(self, candidate: scheduler_pending.PendingWorkload) -> str:
        """Since when a candidate waits: one that was evicted for no fault of its own keeps that."""
        said = (
            one.since
            for one in self._live.values()
            if one.since and term.may_use(one, candidate.first, self._leaf_of(candidate.first))
        )
        return min((candidate.since, *said))

    def _evict(self, item: write_pool.WorkItem, one: reservations.Reservation) -> None:
        """What is not held is not gone for."""
        if one.held or one.name.startswith(REPLACE):
            self._departing.evict_victims(item, one)
        elif _is_own(one):
            self._hands.delete_reservation(one)

    def _others(self, one: reservations.Reservation) -> Iterator[pods.Pod]:
        """Who has what is held for its holder."""
        view = self._known.view
        for key in {holder.claim for held in one.held for holder in view.holders(held.device)}:
            yield from (
                pod
                for pod in stores.claim_users(self._known.stores, key)
                if not self._is_holder(one, pod)
            )

    def pending_keys(self) -> tuple[ids.Key, ...]:
        """Those for which no devices were found yet."""
        return tuple(sorted(self._pending))

    def _plan(self, one: reservations.Reservation, now: dt.datetime) -> None:
        people = holders.HolderIndex(
            self._known.view, self._known.stores.claims.get, self._known.stores.pods.get
        )
        seen = self.arrived.view_for(provisioning_demand.reservation_key(one.key))
        view = device_plan.view_at_start(seen, people, one, now)
        found = device_plan.plan_devices(view, one, self._deciding)
        if isinstance(found, gang_types.GangUnschedulable):
            self._pending.add(one.key)
            words = seating_words.gang_unschedulable(found, topology.Topology())
            wrong = device_plan.class_fault(view, one) if found.blocker is not None else ""
            self._say(one, "Pending", (), wrong or words, refused=found.blocker is not None)
            return
        self._pending.discard(one.key)
        self._hold(one, found)
        self._say(one, "Held", found, "")

    def _end(self, one: reservations.Reservation, phase: str, why: str) -> None:
        """One of ours goes; one that somebody made stays, and says what became of it."""
        self._pending.discard(one.key)
        self._hold(one, ())
        if _is_own(one):
            self._hands.delete_reservation(one)
        else:
            self._say(one, phase, (), why)

    def _say(
        self,
        one: reservations.Reservation,
        phase: str,
        held: Sequence[reservations.Held],
        why: str,
        *,
        refused: bool = False,
    ) -> None:
        reason = reasons.Reason.RESERVATION_REFUSED if refused else _REASONS[phase]
        now = clock.rfc3339(self._known.clock.now())
        accepted = reservations.accepted(one, "" if not refused else why, reason.value, now)
        body = reservations.render_status(one, phase, held, accepted, why)
        if not reservations.same(one.status, body):
            _log.info("reservation", key=one.key, phase=phase, devices=len(held), why=why)
            self._hands.write_reservation_status(one, body, reason, why)

    # For those who are placed.

    def held_for(
        self, candidate: scheduler_pending.PendingWorkload
    ) -> tuple[reservations.Reservation, ...]:
        """The Reservations that hold something for a candidate now."""
        return tuple(
            one
            for one in self._live.values()
            if self._known.view.allocation(term.holder_key(one)) is not None
            and all(
                term.may_use(one, work.pod, self._leaf_of(work.pod)) for work in candidate.workloads
            )
        )

    def usable_before_start(
        self, candidate: scheduler_pending.PendingWorkload
    ) -> tuple[reservations.Reservation, ...]:
        """Those that have not started, and will not before a candidate is over."""
        now = self._known.clock.now()
        return tuple(
            one
            for one in self._live.values()
            if term.start_time(one) > now
            and all(
                term.ends_by(work.pod, term.start_time(one), now) for work in candidate.workloads
            )
        )

    def view_for(
        self, found: Sequence[reservations.Reservation], *, narrow: bool
    ) -> snapshot.Snapshot:
        """The picture without what these hold; `narrow`: of the nodes alone where they hold it."""
        only = {held.node for one in found for held in one.held} if narrow else None
        return reservation_overlay.WithoutReservations(
            self._known.view, [term.holder_key(one) for one in found], only
        )

    def refresh_held(self, found: Sequence[reservations.Reservation]) -> None:
        """Their holder was just placed."""
        for one in found:
            self._keep(one)


def _uids(one: reservations.Reservation) -> frozenset[ids.PodUid]:
    """Of those who go for it."""
    return frozenset(victim.uid for victim in one.evicting)


def _is_own(one: reservations.Reservation) -> bool:
    """Whether the controller made it."""
    return bool(one.evicting) and one.name.startswith((PREEMPT, REPLACE))
