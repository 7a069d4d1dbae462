"""Reservation controller: holds devices in the view, for their holders, until used or expired."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import replace

import structlog

from driver import clock, ids, reasons
from driver.controller.commit import object_writer, write_pool
from driver.controller.informers import stores
from driver.controller.scheduler import pending as scheduler_pending
from driver.controller.scheduler import state
from driver.controller.scheduler.eviction import evictions
from driver.controller.scheduler.provisioner import arrived_capacity
from driver.controller.scheduler.queues import queue_usage
from driver.resources import reservations
from driver.resources.core import pods
from driver.scheduling.explain import holders
from driver.scheduling.gangs import messages as seating_words
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.reservations import device_plan, term
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)
_RECHECK_S = 30.0
PREEMPT, REPLACE = "preempt-", "replace-"
"""Begin the names of the controller's own; the latter are for those who go for them."""
_RECREATE_S = 60.0
"""Within it the owner of a pod that goes makes the next one."""
_OVER = frozenset({"Used", "Expired"})
_REASONS = {
    "Pending": reasons.Reason.RESERVATION_PENDING,
    "Held": reasons.Reason.RESERVATION_HELD,
    "Used": reasons.Reason.RESERVATION_USED,
    "Expired": reasons.Reason.RESERVATION_EXPIRED,
}


class ReservationController:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        hands: object_writer.ObjectWriter,
        charges: queue_usage.QueueUsage,
        brought: arrived_capacity.ArrivedCapacity,
        going: evictions.EvictionRequester,
    ) -> None:
        self._context = context
        self._writer = hands
        self._usage = charges
        self._arrived = brought
        self._live: dict[ids.Key, reservations.Reservation] = {}
        self._pending: set[ids.Key] = set()
        self._evictions = going

    def set_reservation(self, key: ids.Key, reservation: reservations.Reservation | None) -> None:
        """Apply a Reservation's change: hold its devices in the view."""
        if reservation is None:
            gone = self._live.pop(key, None)
            self._pending.discard(key)
            self._evictions.forget(key)
            if gone is not None:
                self._hold(gone, ())
            return
        self._live[key] = reservation
        self._refresh(reservation)

    def _refresh(
        self, reservation: reservations.Reservation
    ) -> tuple[reservations.HeldDevice, ...]:
        """Hold the devices that the holder does not use yet; return them."""
        left = term.unused_devices(
            reservation, self._context.view, self._holder_claims(reservation)
        )
        self._hold(reservation, left)
        return left

    def _hold(
        self, reservation: reservations.Reservation, held: Sequence[reservations.HeldDevice]
    ) -> None:
        """Charge held devices to the holder's queue, and stop charging the victims' claims."""
        allocation = term.held_allocation(held)
        self._context.view.set_reserved_devices(term.holder_key(reservation), allocation)
        self._usage.charge_reservation(
            term.holder_key(reservation), self._holder_queue(reservation), allocation
        )
        self._usage.exclude_claims(
            term.holder_key(reservation), self._victim_claims(reservation) if held else ()
        )

    def _holder_queue(self, reservation: reservations.Reservation) -> str:
        """Return the queue of an existing holder pod, else of a synthetic one."""
        holder_pods = (
            pod
            for pod in self._context.stores.pods.snapshot().values()
            if pod.namespace == reservation.namespace and term.may_use(reservation, pod, "")
        )
        return self._usage.pod_queue(next(holder_pods, term.sample_holder(reservation)))

    def _victim_claims(self, reservation: reservations.Reservation) -> Iterator[ids.Key]:
        """Yield the claims of the victims."""
        for victim in reservation.evicting:
            pod = self._context.stores.pods.get(victim.key)
            if pod is not None and pod.uid == victim.uid:
                yield from pod.claim_keys

    def _holder_claims(self, reservation: reservations.Reservation) -> Iterator[ids.Key]:
        """Yield the claims of the holder; the victims' excepted."""
        view = self._context.view
        for key in {
            holder.claim for held in reservation.held for holder in view.holders(held.device)
        }:
            if any(
                self._is_holder(reservation, pod)
                for pod in stores.claim_users(self._context.stores, key)
            ):
                yield key
        for decision in self._context.memory.in_flight.values():
            if term.may_use(reservation, decision.pod, self._usage.pod_queue(decision.pod)):
                yield from decision.allocations

    def _is_holder(self, reservation: reservations.Reservation, pod: pods.Pod) -> bool:
        return pod.uid not in _victim_uids(reservation) and term.may_use(
            reservation, pod, self._usage.pod_queue(pod)
        )

    # What is due.

    def reconcile(self, item: write_pool.WorkItem) -> float | None:
        """Reconcile a Reservation; return the seconds until the next reconcile."""
        self._context.refresh_view()
        reservation = self._context.stores.reservations.get(item.key)
        if reservation is None:
            self.set_reservation(item.key, None)
        if reservation is None or reservation.deleting or reservation.phase in _OVER:
            return None
        now = self._context.clock.now()
        over = self._end_phase(reservation, self._refresh(reservation), now)
        if over is not None:
            self._end(reservation, *over)
            return None
        if reservation.evicting:
            self._evict(item, reservation)
        elif not reservation.held:
            self._plan(reservation, now)
        elif term.start_time(reservation) <= now:
            self._evictions.evict_overrun(item, reservation, self._other_users(reservation))
        until = [
            (moment - now).total_seconds()
            for moment in (term.end_time(reservation), term.start_time(reservation))
        ]
        again_s = evictions.RETRY_S if reservation.evicting else _RECHECK_S
        return min(each for each in (*until, again_s) if each > 0)

    def _end_phase(
        self,
        reservation: reservations.Reservation,
        left: Sequence[reservations.HeldDevice],
        now: dt.datetime,
    ) -> tuple[str, str] | None:
        """Return the phase in which it ends now, and why; None: it does not end."""
        if reservation.held and not left:
            return "Used", "every device is used"
        if reservation.evicting and not self._is_awaited(reservation, now):
            return "Used", "its workload is no longer pending"
        if now >= term.end_time(reservation):
            return "Expired", f"it was not used by {clock.rfc3339(term.end_time(reservation))}"
        return None

    def _is_awaited(self, reservation: reservations.Reservation, now: dt.datetime) -> bool:
        """Return whether a holder pod has no devices yet, or is about to be recreated.

        User-created Reservations are awaited until they expire.
        """
        if not _is_internal(reservation):
            return True
        if reservation.name.startswith(REPLACE):
            victim_pods = (
                self._context.stores.pods.get(victim.key) for victim in reservation.evicting
            )
            going = any(
                pod is not None and pod.uid in _victim_uids(reservation) for pod in victim_pods
            )
            if going or (now - term.start_time(reservation)).total_seconds() < _RECREATE_S:
                return True
        for pod in self._context.stores.pods.snapshot().values():
            mine = pod.namespace == reservation.namespace and pod.node is None and not pod.finished
            if mine and not pod.deleting and term.may_use(reservation, pod, ""):
                pod_claims = snapshot.pod_claims(pod, self._context.stores.claims.get)
                if pod_claims is None or any(claim.allocation is None for claim in pod_claims):
                    return True
        return False

    # Of those for which pods go.

    def create_for_eviction(
        self,
        reservation: reservations.Reservation,
        held: Sequence[reservations.HeldDevice],
        messages: evictions.EvictionMessages,
    ) -> None:
        """Hold the devices at once and write the Reservation; evictions follow the write."""
        self._evictions.set_messages(reservation.key, messages)
        self.set_reservation(reservation.key, replace(reservation, held=tuple(held)))
        accepted = reservations.render_accepted(reservation, "", "", reservation.created)
        status = reservations.render_status(reservation, "Held", held, accepted, "")
        self._writer.create_reservation(
            reservation.namespace, reservations.render(reservation), status
        )

    def evicting_count(self) -> int:
        """Return the number of Reservations with victims."""
        return sum(1 for reservation in self._live.values() if reservation.evicting)

    def has_pending_eviction(self, candidate: scheduler_pending.PendingWorkload) -> bool:
        """Return whether pods are being evicted for a workload."""
        return any(
            reservation.evicting and term.may_use(reservation, candidate.first, "")
            for reservation in self._live.values()
        )

    def is_victim(self, pod: pods.Pod) -> bool:
        """Return whether a pod is to be evicted for a Reservation."""
        return any(pod.uid in _victim_uids(reservation) for reservation in self._live.values())

    def pending_since(self, candidate: scheduler_pending.PendingWorkload) -> str:
        """Return since when a workload is pending; one evicted for a fault keeps its time."""
        times = (
            reservation.since
            for reservation in self._live.values()
            if reservation.since
            and term.may_use(reservation, candidate.first, self._usage.pod_queue(candidate.first))
        )
        return min((candidate.since, *times))

    def _evict(self, item: write_pool.WorkItem, reservation: reservations.Reservation) -> None:
        """Evict the victims; without held devices delete the Reservation instead."""
        if reservation.held or reservation.name.startswith(REPLACE):
            self._evictions.evict_victims(item, reservation)
        elif _is_internal(reservation):
            self._writer.delete_reservation(reservation)

    def _other_users(self, reservation: reservations.Reservation) -> Iterator[pods.Pod]:
        """Yield the pods of others that use the held devices."""
        view = self._context.view
        for key in {
            holder.claim for held in reservation.held for holder in view.holders(held.device)
        }:
            yield from (
                pod
                for pod in stores.claim_users(self._context.stores, key)
                if not self._is_holder(reservation, pod)
            )

    def pending_keys(self) -> tuple[ids.Key, ...]:
        """Return the keys of Reservations without devices."""
        return tuple(sorted(self._pending))

    def _plan(self, reservation: reservations.Reservation, now: dt.datetime) -> None:
        people = holders.HolderIndex(
            self._context.view, self._context.stores.claims.get, self._context.stores.pods.get
        )
        seen = self._arrived.view_for(provisioning_demand.reservation_key(reservation.key))
        view = device_plan.view_at_start(seen, people, reservation, now)
        placement = device_plan.plan_devices(view, reservation, self._context.settings.allocator)
        if isinstance(placement, gang_types.GangUnschedulable):
            self._pending.add(reservation.key)
            words = seating_words.gang_unschedulable(placement, topology.Topology())
            wrong = (
                device_plan.class_fault(view, reservation) if placement.blocker is not None else ""
            )
            self._write_status(
                reservation, "Pending", (), wrong or words, refused=placement.blocker is not None
            )
            return
        self._pending.discard(reservation.key)
        self._hold(reservation, placement)
        self._write_status(reservation, "Held", placement, "")

    def _end(self, reservation: reservations.Reservation, phase: str, why: str) -> None:
        """End a Reservation: delete an internal one, write the phase of a user's."""
        self._pending.discard(reservation.key)
        self._hold(reservation, ())
        if _is_internal(reservation):
            self._writer.delete_reservation(reservation)
        else:
            self._write_status(reservation, phase, (), why)

    def _write_status(
        self,
        reservation: reservations.Reservation,
        phase: str,
        held: Sequence[reservations.HeldDevice],
        why: str,
        *,
        refused: bool = False,
    ) -> None:
        reason = reasons.Reason.RESERVATION_REFUSED if refused else _REASONS[phase]
        now = clock.rfc3339(self._context.clock.now())
        accepted = reservations.render_accepted(
            reservation, "" if not refused else why, reason.value, now
        )
        body = reservations.render_status(reservation, phase, held, accepted, why)
        if not reservations.is_same_status(reservation.status, body):
            _log.info("reservation", key=reservation.key, phase=phase, devices=len(held), why=why)
            self._writer.write_reservation_status(reservation, body, reason, why)

    # For those who are placed.

    def held_for(
        self, candidate: scheduler_pending.PendingWorkload
    ) -> tuple[reservations.Reservation, ...]:
        """Return the Reservations that hold devices for a workload."""
        return tuple(
            reservation
            for reservation in self._live.values()
            if self._context.view.allocation(term.holder_key(reservation)) is not None
            and all(
                term.may_use(reservation, work.pod, self._usage.pod_queue(work.pod))
                for work in candidate.workloads
            )
        )

    def usable_before_start(
        self, candidate: scheduler_pending.PendingWorkload
    ) -> tuple[reservations.Reservation, ...]:
        """Return the Reservations that start after the workload ends."""
        now = self._context.clock.now()
        return tuple(
            reservation
            for reservation in self._live.values()
            if term.start_time(reservation) > now
            and all(
                term.ends_by(work.pod, term.start_time(reservation), now)
                for work in candidate.workloads
            )
        )

    def view_for(
        self, usable: Sequence[reservations.Reservation], *, narrow: bool
    ) -> snapshot.Snapshot:
        """Return the view without what these hold; `narrow`: only the nodes where they hold it."""
        only = (
            {held.node for reservation in usable for held in reservation.held} if narrow else None
        )
        return reservation_overlay.WithoutReservations(
            self._context.view, [term.holder_key(reservation) for reservation in usable], only
        )

    def arrived_view(
        self, candidate: scheduler_pending.PendingWorkload
    ) -> snapshot.Snapshot | None:
        """Return the view with what arrived for a workload; None if nothing is held for it."""
        key = candidate.demand_key
        return self._arrived.view_for(key) if self._arrived.has(key) else None

    def refresh_held(self, usable: Sequence[reservations.Reservation]) -> None:
        """Update what is held after a holder was placed."""
        for reservation in usable:
            self._refresh(reservation)


def _victim_uids(reservation: reservations.Reservation) -> frozenset[ids.PodUid]:
    """Return the UIDs of the victims."""
    return frozenset(victim.uid for victim in reservation.evicting)


def _is_internal(reservation: reservations.Reservation) -> bool:
    """Return whether the controller created it."""
    return bool(reservation.evicting) and reservation.name.startswith((PREEMPT, REPLACE))
