"""Whose turn it is: candidates are served in the order of their queues, each as far as it may."""

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
_PATIENT = 10.0
"""A gang that was refused is looked at again after so many times what that took."""


class SchedulingCycle:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.SchedulerContext,
        charges: queue_usage.QueueUsage,
        alone: pod_scheduler.PodScheduler,
        together: gang_scheduler.GangScheduler,
        room: preemption.Preemption,
        first: backfill.BackfillReservation,
    ) -> None:
        self._known = known
        self._engine = charges.engine
        self._charges = charges
        self._singles = alone
        self._gangs = together
        self._reserving = room.reservations
        self._placing = room.results
        self._preemption = room
        self._head = first
        self._rest: dict[write_pool.WorkItem, float] = {}
        self._again: dict[write_pool.WorkItem, float] = {}
        self._used: list[write_pool.WorkItem] = []
        self._kept_at: write_pool.WorkItem | None = None
        self._freed = 0
        self._passed = -1

    def schedule(
        self, due: Sequence[pending.PendingWorkload], guard: Guard
    ) -> Iterator[tuple[write_pool.WorkItem, float]]:
        """Serve what is due; what finds no place waits, some of it until so many seconds later."""
        waiting = self._known.memory.waiting
        for one in due:
            waiting[one.item] = one
        self._known.refresh_view()
        if self._head.refresh() or self._may_overtake(due):
            # What is free now is for the first in order, whoever is due.
            yield write_pool.WAKE, 0.0
            return
        yield from self._pass(due, guard)
        if waiting and (
            self._known.view.revision != self._passed or self._placing.message_refresh.behind
        ):
            # Nothing may wake those who wait, and what they were told may be old.
            yield write_pool.WAKE, refresh.REFRESH_S

    def _may_overtake(self, due: Sequence[pending.PendingWorkload]) -> bool:
        """Tell, once for what became free, if others wait for it that are not due."""
        freed = self._known.view.release_count
        if not due or freed == self._freed:
            return False
        self._freed = freed
        return not self._is_all(due)

    def _is_all(self, due: Sequence[pending.PendingWorkload]) -> bool:
        waiting = self._known.memory.waiting
        return len(due) >= sum(candidate is not None for candidate in waiting.values())

    def _pass(
        self, due: Sequence[pending.PendingWorkload], guard: Guard
    ) -> Iterator[tuple[write_pool.WorkItem, float]]:
        """One round of turns, in order."""
        if not due:
            return
        complete = self._is_all(due)
        if complete:
            self._placing.message_refresh.behind = False
        self._charges.refresh(self._now())
        self._head.release()
        placed = False
        for candidate, later in self._beside_head(due):
            served = pending.ScheduleResult.LIMITED
            with guard(candidate.item):
                served = self._turn(candidate)
                self._keep_behind(candidate, served, later=later)
            placed |= served is _PLACED
            again_s = self._again_s(candidate)
            if again_s is not None and served is not _PLACED:
                yield candidate.item, again_s
            self._charges.refresh(self._now())
        self._head.hold()
        if complete and not placed:
            self._passed = self._known.view.revision
        turns_in = self._head.expires_in_s()
        if turns_in is not None:
            yield write_pool.WAKE, turns_in
        used, self._used = self._used, []
        yield from ((item, 0.0) for item in used)

    def _beside_head(
        self, due: Sequence[pending.PendingWorkload]
    ) -> Iterator[tuple[pending.PendingWorkload, bool]]:
        """What is due, in order, and whether something before it keeps what it waits for."""
        wanted = {one.item: one for one in due}
        first = self._known.memory.waiting.get(self._head.item) if self._head.item else None
        self._kept_at = None
        for one in self._in_order({**wanted, **({first.item: first} if first else {})}):
            if one.item in wanted:
                yield one, self._kept_at is not None
            elif self._kept_at is None:
                self._kept_at = one.item
                self._head.hold()

    def _keep_behind(
        self, one: pending.PendingWorkload, served: pending.ScheduleResult, *, later: bool
    ) -> None:
        """The first that finds no place has that planned for it where it starts soonest."""
        if one.item == self._head.item:
            if served is pending.ScheduleResult.RESTING:
                self._head.hold()
                self._kept_at = one.item
            elif served is not pending.ScheduleResult.UNSCHEDULABLE:
                self._head.drop()
        if served is not pending.ScheduleResult.UNSCHEDULABLE or later:
            return
        if self._head.reserve(one, starves=self._starves_in(one) == 0.0):
            self._kept_at = one.item

    def _starves_in(self, candidate: pending.PendingWorkload) -> float | None:
        """Seconds until a candidate is past its starvation bound, 0 from then on; None: never."""
        bound = self._head.rules.bound_s(queues=not self._engine.tree.is_implicit_only)
        if bound is None:
            return None
        since = pending.parse_time(self._reserving.pending_since(candidate))
        return max(since + bound - self._now(), 0.0)

    def pending_in_order(self) -> list[pending.PendingWorkload]:
        """All that waits for a place, in the order in which it would be served if all were."""
        waiting = self._known.memory.waiting
        everyone = [one for one in waiting.values() if one is not None]
        if self._engine.tree.is_implicit_only:
            return sorted(everyone, key=self._rank)
        found = self._engine.hypothetical_order(map(self._waiting, everyone), self._now())
        by_item = {one.item: one for one in everyone}
        return [by_item[one.key] for one in found if isinstance(one.key, write_pool.WorkItem)]

    def _in_order(
        self, found: Mapping[write_pool.WorkItem, pending.PendingWorkload]
    ) -> Iterator[pending.PendingWorkload]:
        """Of queues the line of all that waits; without any, by priority, age and name."""
        if self._engine.tree.is_implicit_only:
            yield from sorted(found.values(), key=self._rank)
            return
        everyone = (one for one in self._known.memory.waiting.values() if one is not None)
        for entry in self._engine.schedule_order(map(self._waiting, everyone), self._now()):
            one = found.get(entry.key) if isinstance(entry.key, write_pool.WorkItem) else None
            if one is not None:
                yield one

    def _waiting(self, one: pending.PendingWorkload) -> order.PendingEntry:
        asked = self._engine.requested_amounts(self._known.view, one.open_claims)
        since = pending.parse_time(self._reserving.pending_since(one))
        return order.PendingEntry(one.item, self.workload_queue(one), one.priority, since, asked)

    def _rank(self, one: pending.PendingWorkload) -> tuple[int, str, str]:
        """By priority, age and name."""
        return -one.priority, self._reserving.pending_since(one), one.item.key

    def workload_queue(self, one: pending.PendingWorkload) -> str:
        """The queue of a candidate: of a gang that of its first pod."""
        return self._engine.pod_queue(one.first)

    def _again_s(self, one: pending.PendingWorkload) -> float | None:
        """Until a node is not left out any more, a gang has rested, or others may go for it."""
        if one.is_bound:
            return _STRANDED_S
        now = self._known.clock.monotonic()
        refusals = self._known.memory.refused
        ends = [refusals.next_retry(work.pod, now) for work in one.workloads]
        starves_in = self._starves_in(one)
        more = (
            self._rest.get(one.item),
            self._again.pop(one.item, None),
            self._head.next_attempt(one.item),
            now + starves_in if starves_in else None,
        )
        known = [end for end in (*ends, *more) if end is not None and end > now]
        return min(known) - now if known else None

    def _turn(self, one: pending.PendingWorkload) -> pending.ScheduleResult:
        """Its turn, unless another pod of its claim has just had one.

        A second decision for a claim would hide what the first one gives from everybody. The
        claim's change brings this pod back.
        """
        if any(claim.key in self._known.memory.writing for claim in one.open_claims):
            return pending.ScheduleResult.RESTING
        return self._one(one)

    def _one(self, one: pending.PendingWorkload) -> pending.ScheduleResult:
        leaf = self.workload_queue(one)
        for claim in one.open_claims:
            self._charges.assign_queue(claim.key, leaf)
        vet = self._vet(leaf)
        kept = self._reserving.held_for(one)
        if self._kept_place(one, kept, vet):
            return _PLACED
        if any(each.evicting for each in kept):
            return pending.ScheduleResult.LIMITED  # others are leaving for it
        served = self._served(replace(one, note=functools.partial(self.pending_note, one)), vet)
        if served is pending.ScheduleResult.LIMITED and self._of_other_models(one, leaf, vet):
            return _PLACED
        if served is not pending.ScheduleResult.UNSCHEDULABLE:
            return served  # of a bound pod too: preemption and reservations are for those that wait
        lent = self._reserving.usable_before_start(one)
        if (lent and self._attempt(one, lent, vet)) or self._before_head(one, vet):
            return _PLACED
        again_s = self._preemption.try_preempt(one, leaf)
        if again_s is not None:
            self._again[one.item] = self._known.clock.monotonic() + again_s
        return served

    def _kept_place(
        self,
        one: pending.PendingWorkload,
        kept: Sequence[reservations.Reservation],
        vet: pending.QuotaCheck,
    ) -> bool:
        """On what is reserved for it, or on nodes that came for it."""
        if kept and self._attempt(one, kept, vet):
            return True
        brought = self._reserving.arrived
        return brought.has(one.demand_key) and self._on(one, brought.view_for(one.demand_key), vet)

    def _of_other_models(
        self, one: pending.PendingWorkload, leaf: str, vet: pending.QuotaCheck
    ) -> bool:
        """Where a queue has all it may of a model: on nodes that have none of it."""
        full = self._engine.full_models(leaf)
        if not full:
            return False
        view = self._known.view
        only = [name for name in view.nodes if not full & queue_resources.products(view, name)]
        return self._on(one, reservation_overlay.WithoutReservations(view, (), only), vet)

    def _before_head(self, one: pending.PendingWorkload, vet: pending.QuotaCheck) -> bool:
        """On what is kept for the head, where it is over before that starts."""
        if self._kept_at is None or not self._head.allows(one):
            return False
        return self._on(
            one, reservation_overlay.WithoutReservations(self._known.view, [backfill.KEY]), vet
        )

    def _attempt(
        self,
        one: pending.PendingWorkload,
        found: Sequence[reservations.Reservation],
        vet: pending.QuotaCheck,
    ) -> bool:
        """On what is reserved: first of its nodes alone."""
        for narrow in (True, False):
            view = self._reserving.view_for(found, narrow=narrow)
            if self._on(one, view, vet):
                self._reserving.refresh_held(found)
                self._used += [write_pool.WorkItem("reservation", kept.key) for kept in found]
                return True
        return False

    def _on(
        self, one: pending.PendingWorkload, view: snapshot.Snapshot, vet: pending.QuotaCheck
    ) -> bool:
        if one.gang is not None:
            return self._gangs.try_on_view(one, one.gang, view, vet)
        return self._singles.try_on_view(one, view, vet)

    def _served(
        self, one: pending.PendingWorkload, vet: pending.QuotaCheck
    ) -> pending.ScheduleResult:
        if one.gang is None:
            return self._singles.schedule(one, vet)
        begun = self._known.clock.monotonic()
        if self._rest.get(one.item, 0.0) > begun:
            return pending.ScheduleResult.RESTING
        served = self._gangs.schedule(one, one.gang, vet)
        self._rest = {item: at for item, at in self._rest.items() if at > begun}
        if served is not _PLACED:
            ended = self._known.clock.monotonic()
            self._rest[one.item] = ended + _PATIENT * (ended - begun)
        return served

    @property
    def plan(self) -> backfill_plan.BackfillPlan | None:
        """Devices planned for the first in line."""
        return self._head.plan

    def pending_note(self, candidate: pending.PendingWorkload) -> str:
        """Sentences on a candidate's queue, and on a plan for it or in its gang's way."""
        own = candidate.item == self._head.item
        meets = candidate.gang is not None and self._kept_at is not None
        leaf = self.workload_queue(candidate)
        plan = self._placing.holders.describe_plan(own=own) if own or meets else ""
        if self._engine.tree.is_implicit_only:
            return plan
        share = queue_messages.share_message(leaf, self._engine.queue_status(leaf))
        return ". ".join(part for part in (share, plan) if part)

    def _vet(self, leaf: str) -> pending.QuotaCheck:
        def vet(found: Iterable[claims.Result]) -> str:
            if self._engine.tree.is_implicit_only:
                return ""
            over = self._engine.exceeded_limit(
                leaf, queue_resources.results_amounts(self._known.view, found)
            )
            return queue_messages.limit_message(over) if over is not None else ""

        return vet

    def _now(self) -> float:
        return self._known.clock.now().timestamp()
