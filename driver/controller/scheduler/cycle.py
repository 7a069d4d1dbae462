"""Scheduling cycle: serves pending workloads in the order of their queues."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from driver.controller.commit import write_pool
from driver.controller.scheduler import (
    backfill,
    gang_scheduler,
    pending,
    pod_scheduler,
    queue_usage,
    state,
)
from driver.controller.scheduler.eviction import preemption
from driver.controller.scheduler.explain import refresh
from driver.resources import reservations
from driver.resources.dra import claims
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.queues import messages as queue_messages
from driver.scheduling.queues import order
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

Guard = Callable[[write_pool.WorkItem], AbstractContextManager[None]]
"""Keeps the fault of one turn from the others."""
_PLACED = pending.ScheduleResult.PLACED
_STRANDED_S = 5.0
"""Between two looks at a bound pod whose node has no room for its claims."""
_GANG_REST_FACTOR = 10.0
"""A gang that was refused is looked at again after so many times what that took."""


class SchedulingCycle:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        charges: queue_usage.QueueUsage,
        alone: pod_scheduler.PodScheduler,
        together: gang_scheduler.GangScheduler,
        room: preemption.Preemption,
        first: backfill.BackfillReservation,
    ) -> None:
        self._context = context
        self._engine = charges.engine
        self._usage = charges
        self._pods = alone
        self._gangs = together
        self._reservations = room.reservations
        self._results = room.results
        self._preemption = room
        self._backfill = first
        self._rest_until: dict[write_pool.WorkItem, float] = {}
        self._retry_at: dict[write_pool.WorkItem, float] = {}
        self._used_reservations: list[write_pool.WorkItem] = []
        self._held_by: write_pool.WorkItem | None = None
        self._release_count = 0
        self._scanned_revision = -1

    def schedule(
        self, due: Sequence[pending.PendingWorkload], guard: Guard
    ) -> Iterator[tuple[write_pool.WorkItem, float]]:
        """Schedule due workloads; yield items to enqueue again, each after some seconds."""
        waiting = self._context.memory.waiting
        for workload in due:
            waiting[workload.item] = workload
        self._context.refresh_view()
        if self._backfill.refresh() or self._needs_full_pass(due):
            # What is free now is for the first in order, whoever is due.
            yield write_pool.WAKE, 0.0
            return
        yield from self._run_pass(due, guard)
        if waiting and (
            self._context.view.revision != self._scanned_revision
            or self._results.message_refresh.behind
        ):
            # Nothing may wake those who wait, and what they were told may be old.
            yield write_pool.WAKE, refresh.REFRESH_S

    def _needs_full_pass(self, due: Sequence[pending.PendingWorkload]) -> bool:
        """Return, once per release of devices, whether workloads that are not due are pending."""
        freed = self._context.view.release_count
        if not due or freed == self._release_count:
            return False
        self._release_count = freed
        return not self._covers_pending(due)

    def _covers_pending(self, due: Sequence[pending.PendingWorkload]) -> bool:
        waiting = self._context.memory.waiting
        return len(due) >= sum(candidate is not None for candidate in waiting.values())

    def _run_pass(
        self, due: Sequence[pending.PendingWorkload], guard: Guard
    ) -> Iterator[tuple[write_pool.WorkItem, float]]:
        """Schedule the due workloads in order."""
        if not due:
            return
        complete = self._covers_pending(due)
        if complete:
            self._results.message_refresh.behind = False
        self._usage.refresh(self._now())
        self._backfill.release()
        placed = False
        for candidate, later in self._iterate_due(due):
            served = pending.ScheduleResult.LIMITED
            with guard(candidate.item):
                served = self._schedule_workload(candidate)
                self._update_backfill(candidate, served, later=later)
            placed |= served is _PLACED
            again_s = self._retry_after_s(candidate)
            if again_s is not None and served is not _PLACED:
                yield candidate.item, again_s
            self._usage.refresh(self._now())
        self._backfill.hold()
        if complete and not placed:
            self._scanned_revision = self._context.view.revision
        turns_in = self._backfill.expires_in_s()
        if turns_in is not None:
            yield write_pool.WAKE, turns_in
        used, self._used_reservations = self._used_reservations, []
        yield from ((item, 0.0) for item in used)

    def _iterate_due(
        self, due: Sequence[pending.PendingWorkload]
    ) -> Iterator[tuple[pending.PendingWorkload, bool]]:
        """Yield due workloads in order, and whether an earlier one holds capacity."""
        by_item = {workload.item: workload for workload in due}
        first = (
            self._context.memory.waiting.get(self._backfill.item) if self._backfill.item else None
        )
        self._held_by = None
        for workload in self._in_order({**by_item, **({first.item: first} if first else {})}):
            if workload.item in by_item:
                yield workload, self._held_by is not None
            elif self._held_by is None:
                self._held_by = workload.item
                self._backfill.hold()

    def _update_backfill(
        self, workload: pending.PendingWorkload, served: pending.ScheduleResult, *, later: bool
    ) -> None:
        """Reserve the earliest start for the first workload that fits nowhere."""
        if workload.item == self._backfill.item:
            if served is pending.ScheduleResult.RESTING:
                self._backfill.hold()
                self._held_by = workload.item
            elif served is not pending.ScheduleResult.UNSCHEDULABLE:
                self._backfill.drop()
        if served is not pending.ScheduleResult.UNSCHEDULABLE or later:
            return
        if self._backfill.reserve(workload, starves=self._starves_in(workload) == 0.0):
            self._held_by = workload.item

    def _starves_in(self, candidate: pending.PendingWorkload) -> float | None:
        """Return the seconds to the workload's starvation bound, 0 past it; None: no bound."""
        bound = self._backfill.rules.bound_s(queues=not self._engine.tree.is_implicit_only)
        if bound is None:
            return None
        since = pending.parse_time(self._reservations.pending_since(candidate))
        return max(since + bound - self._now(), 0.0)

    def pending_in_order(self) -> list[pending.PendingWorkload]:
        """Return all pending workloads in scheduling order."""
        waiting = self._context.memory.waiting
        everyone = [workload for workload in waiting.values() if workload is not None]
        if self._engine.tree.is_implicit_only:
            return sorted(everyone, key=self._priority_key)
        entries = self._engine.hypothetical_order(map(self._queue_entry, everyone), self._now())
        by_item = {workload.item: workload for workload in everyone}
        return [
            by_item[workload.key]
            for workload in entries
            if isinstance(workload.key, write_pool.WorkItem)
        ]

    def _in_order(
        self, workloads: Mapping[write_pool.WorkItem, pending.PendingWorkload]
    ) -> Iterator[pending.PendingWorkload]:
        """Yield workloads in queue order; without queues by priority, age and name."""
        if self._engine.tree.is_implicit_only:
            yield from sorted(workloads.values(), key=self._priority_key)
            return
        everyone = (
            workload for workload in self._context.memory.waiting.values() if workload is not None
        )
        for entry in self._engine.schedule_order(map(self._queue_entry, everyone), self._now()):
            workload = (
                workloads.get(entry.key) if isinstance(entry.key, write_pool.WorkItem) else None
            )
            if workload is not None:
                yield workload

    def _queue_entry(self, workload: pending.PendingWorkload) -> order.PendingEntry:
        requested = self._engine.requested_amounts(self._context.view, workload.open_claims)
        since = pending.parse_time(self._reservations.pending_since(workload))
        return order.PendingEntry(
            workload.item, self.workload_queue(workload), workload.priority, since, requested
        )

    def _priority_key(self, workload: pending.PendingWorkload) -> tuple[int, str, str]:
        """Return the sort key: priority, age and name."""
        return -workload.priority, self._reservations.pending_since(workload), workload.item.key

    def workload_queue(self, workload: pending.PendingWorkload) -> str:
        """Return the workload's queue: a gang's is that of its first pod."""
        return self._engine.pod_queue(workload.first)

    def _retry_after_s(self, workload: pending.PendingWorkload) -> float | None:
        """Return the seconds until a back-off, a gang's rest or a preemption pause ends."""
        if workload.is_bound:
            return _STRANDED_S
        now = self._context.clock.monotonic()
        refusals = self._context.memory.refused
        ends = [refusals.next_retry(work.pod, now) for work in workload.workloads]
        starves_in = self._starves_in(workload)
        more = (
            self._rest_until.get(workload.item),
            self._retry_at.pop(workload.item, None),
            self._backfill.next_attempt(workload.item),
            now + starves_in if starves_in else None,
        )
        ends_ahead = [end for end in (*ends, *more) if end is not None and end > now]
        return min(ends_ahead) - now if ends_ahead else None

    def _schedule_workload(self, workload: pending.PendingWorkload) -> pending.ScheduleResult:
        """Schedule a workload, unless a claim of it is being written.

        A second decision for a claim would hide the first one's devices. The claim's change
        enqueues this pod again.
        """
        if any(claim.key in self._context.memory.writing for claim in workload.open_claims):
            return pending.ScheduleResult.RESTING
        return self._place_workload(workload)

    def _place_workload(self, workload: pending.PendingWorkload) -> pending.ScheduleResult:
        leaf = self.workload_queue(workload)
        for claim in workload.open_claims:
            self._usage.assign_queue(claim.key, leaf)
        vet = self._quota_check(leaf)
        held = self._reservations.held_for(workload)
        if self._try_held_capacity(workload, held, vet):
            return _PLACED
        if any(each.evicting for each in held):
            return pending.ScheduleResult.LIMITED  # others are leaving for it
        served = self._schedule_on_cluster(
            replace(workload, note=functools.partial(self.pending_note, workload)), vet
        )
        if served is pending.ScheduleResult.LIMITED and self._try_other_models(workload, leaf, vet):
            return _PLACED
        if served is not pending.ScheduleResult.UNSCHEDULABLE:
            return served  # of a bound pod too: preemption and reservations are for those that wait
        lent = self._reservations.usable_before_start(workload)
        if (lent and self._try_reservations(workload, lent, vet)) or self._try_backfill(
            workload, vet
        ):
            return _PLACED
        again_s = self._preemption.try_preempt(workload, leaf)
        if again_s is not None:
            self._retry_at[workload.item] = self._context.clock.monotonic() + again_s
        return served

    def _try_held_capacity(
        self,
        workload: pending.PendingWorkload,
        held: Sequence[reservations.Reservation],
        vet: pending.QuotaCheck,
    ) -> bool:
        """Try the devices reserved for the workload, then the nodes provisioned for it."""
        if held and self._try_reservations(workload, held, vet):
            return True
        brought = self._reservations.arrived
        return brought.has(workload.demand_key) and self._try_on_view(
            workload, brought.view_for(workload.demand_key), vet
        )

    def _try_other_models(
        self, workload: pending.PendingWorkload, leaf: str, vet: pending.QuotaCheck
    ) -> bool:
        """Try nodes without the GPU models whose queue limit is reached."""
        full = self._engine.full_models(leaf)
        if not full:
            return False
        view = self._context.view
        only = [name for name in view.nodes if not full & queue_resources.products(view, name)]
        return self._try_on_view(
            workload, reservation_overlay.WithoutReservations(view, (), only), vet
        )

    def _try_backfill(self, workload: pending.PendingWorkload, vet: pending.QuotaCheck) -> bool:
        """Try the devices of the backfill plan if the workload ends before it starts."""
        if self._held_by is None or not self._backfill.allows(workload):
            return False
        return self._try_on_view(
            workload,
            reservation_overlay.WithoutReservations(self._context.view, [backfill.KEY]),
            vet,
        )

    def _try_reservations(
        self,
        workload: pending.PendingWorkload,
        usable: Sequence[reservations.Reservation],
        vet: pending.QuotaCheck,
    ) -> bool:
        """Try reserved devices: first on the Reservations' nodes alone."""
        for narrow in (True, False):
            view = self._reservations.view_for(usable, narrow=narrow)
            if self._try_on_view(workload, view, vet):
                self._reservations.refresh_held(usable)
                self._used_reservations += [
                    write_pool.WorkItem("reservation", reservation.key) for reservation in usable
                ]
                return True
        return False

    def _try_on_view(
        self, workload: pending.PendingWorkload, view: snapshot.Snapshot, vet: pending.QuotaCheck
    ) -> bool:
        if workload.gang is not None:
            return self._gangs.try_on_view(workload, workload.gang, view, vet)
        return self._pods.try_on_view(workload, view, vet)

    def _schedule_on_cluster(
        self, workload: pending.PendingWorkload, vet: pending.QuotaCheck
    ) -> pending.ScheduleResult:
        if workload.gang is None:
            return self._pods.schedule(workload, vet)
        begun = self._context.clock.monotonic()
        if self._rest_until.get(workload.item, 0.0) > begun:
            return pending.ScheduleResult.RESTING
        served = self._gangs.schedule(workload, workload.gang, vet)
        self._rest_until = {
            item: until for item, until in self._rest_until.items() if until > begun
        }
        if served is not _PLACED:
            ended = self._context.clock.monotonic()
            self._rest_until[workload.item] = ended + _GANG_REST_FACTOR * (ended - begun)
        return served

    @property
    def plan(self) -> backfill_plan.BackfillPlan | None:
        """The backfill plan."""
        return self._backfill.plan

    def pending_note(self, candidate: pending.PendingWorkload) -> str:
        """Return sentences on the workload's queue, and on a plan for it or in its way."""
        own = candidate.item == self._backfill.item
        meets = candidate.gang is not None and self._held_by is not None
        leaf = self.workload_queue(candidate)
        plan = self._results.holders.describe_plan(own=own) if own or meets else ""
        if self._engine.tree.is_implicit_only:
            return plan
        share = queue_messages.share_message(leaf, self._engine.queue_status(leaf))
        return ". ".join(part for part in (share, plan) if part)

    def _quota_check(self, leaf: str) -> pending.QuotaCheck:
        def vet(results: Iterable[claims.Result]) -> str:
            if self._engine.tree.is_implicit_only:
                return ""
            over = self._engine.exceeded_limit(
                leaf, queue_resources.results_amounts(self._context.view, results)
            )
            return queue_messages.limit_message(over) if over is not None else ""

        return vet

    def _now(self) -> float:
        return self._context.clock.now().timestamp()
