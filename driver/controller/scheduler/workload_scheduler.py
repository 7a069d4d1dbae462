"""Schedules one workload: on capacity held for it, on the cluster, then by favour or preemption."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from driver.controller.commit import write_pool
from driver.controller.scheduler import backfill, pending
from driver.controller.scheduler.eviction import preemption
from driver.controller.scheduler.eviction import reservations as eviction_reservations
from driver.controller.scheduler.queues import queue_usage
from driver.resources import reservations
from driver.scheduling.snapshot import snapshot

_PLACED = pending.ScheduleResult.PLACED


class Scheduler(Protocol):
    """Scheduler of one kind of workloads."""

    def schedule(self, candidate: pending.PendingWorkload) -> pending.ScheduleResult:
        """Decide on the cluster, and commit or report the result."""
        ...

    def try_on_view(self, candidate: pending.PendingWorkload, view: snapshot.Snapshot) -> bool:
        """Decide on another view, and commit; without a fit nothing is reported."""
        ...


class WorkloadScheduler:
    """On the decider's thread."""

    def __init__(
        self,
        schedulers: Mapping[pending.WorkloadKind, Scheduler],
        usage: queue_usage.QueueUsage,
        reservation_controller: eviction_reservations.ReservationController,
        first: backfill.BackfillReservation,
        preempts: preemption.Preemption,
    ) -> None:
        self._schedulers = schedulers
        self._usage = usage
        self._reservations = reservation_controller
        self._backfill = first
        self._preemption = preempts
        self._used_reservations: list[write_pool.WorkItem] = []

    def schedule(self, workload: pending.PendingWorkload) -> pending.ScheduleResult:
        """Try the capacities that the workload may use, in turn."""
        leaf = self._usage.pod_queue(workload.first)
        for claim in workload.open_claims:
            self._usage.assign_queue(claim.key, leaf)
        held = self._reservations.held_for(workload)
        if self._try_held_capacity(workload, held):
            return _PLACED
        if any(each.evicting for each in held):
            return pending.ScheduleResult.LIMITED  # others are leaving for it
        served = self._schedulers[workload.kind].schedule(workload)
        if served is pending.ScheduleResult.LIMITED and self._try_on_view(
            workload, self._usage.other_models_view(leaf)
        ):
            return _PLACED
        if served is not pending.ScheduleResult.UNSCHEDULABLE:
            return served  # of a bound pod too: preemption and reservations are for those that wait
        lent = self._reservations.usable_before_start(workload)
        if (lent and self._try_reservations(workload, lent)) or self._try_on_view(
            workload, self._backfill.view_for(workload)
        ):
            return _PLACED
        self._preemption.try_preempt(workload, leaf)
        return served

    def drain_used_reservations(self) -> list[write_pool.WorkItem]:
        """Return the Reservations that workloads were placed in since the last call."""
        used, self._used_reservations = self._used_reservations, []
        return used

    def _try_held_capacity(
        self, workload: pending.PendingWorkload, held: Sequence[reservations.Reservation]
    ) -> bool:
        """Try the devices reserved for the workload, then the nodes provisioned for it."""
        if held and self._try_reservations(workload, held):
            return True
        return self._try_on_view(workload, self._reservations.arrived_view(workload))

    def _try_reservations(
        self, workload: pending.PendingWorkload, usable: Sequence[reservations.Reservation]
    ) -> bool:
        """Try reserved devices: first on the Reservations' nodes alone."""
        for narrow in (True, False):
            view = self._reservations.view_for(usable, narrow=narrow)
            if self._try_on_view(workload, view):
                self._reservations.refresh_held(usable)
                self._used_reservations += [
                    write_pool.WorkItem("reservation", reservation.key) for reservation in usable
                ]
                return True
        return False

    def _try_on_view(
        self, workload: pending.PendingWorkload, view: snapshot.Snapshot | None
    ) -> bool:
        if view is None:
            return False
        return self._schedulers[workload.kind].try_on_view(workload, view)
