"""Backfill: reserves devices for the first pending workload that fits nowhere.

Later work uses them only if it declares that it ends before (EASY: Lifka, JSSPP 1995), so small
work passes large work without delaying it. Without known end times nothing is reserved, except
in rounds for a pod past its starvation bound (`backfill_plan.BackfillRules`).
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from driver.controller.commit import write_pool
from driver.controller.scheduler import pending, state
from driver.resources import reservations
from driver.scheduling.explain import step_budget
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.preemption import earliest_start, victims
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.reservations import device_plan, term
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)
KEY = backfill_plan.KEY
_STEPS = 2_000
"""Of one look for where it starts: about 50 ms."""
_RETRY_S = 2.0
_PAUSE_FACTOR = 20.0
"""Looks take at most a twentieth of the time: a plan is looked for anew no more often."""
_MAX_SEARCHES = 8
"""Candidates looked at in one pass (Slurm: bf_max_job_test)."""
_GRACE_S = 300.0
"""Work may start and go so much later than its declared run time says (images, grace periods)."""


@dataclass(frozen=True, slots=True)
class _SearchResult:
    """Result of one search; repeated from `retry_at` (monotonic seconds) on."""

    retry_at: float
    start: earliest_start.PlannedStart | None


class BackfillReservation:
    """On the decider's thread; `plan` is readable from any. State may be lost and is found again.

    The plan is in the view while workloads behind it in line are scheduled.
    """

    def __init__(
        self,
        shared: state.SchedulerContext,
        book: victims.VictimIndex,
    ) -> None:
        self._context = shared
        self._victims = book
        self._rules = shared.settings.backfill
        self._held_by: write_pool.WorkItem | None = None
        self._searches: dict[write_pool.WorkItem, _SearchResult] = {}
        self._rests: dict[write_pool.WorkItem, float] = {}
        self._stale: set[write_pool.WorkItem] = set()
        self._rest_end = 0.0
        self._users: frozenset[str] = frozenset()
        self._start: dt.datetime | None = None
        self._search_count = 0
        self.plan: backfill_plan.BackfillPlan | None = None

    @property
    def item(self) -> write_pool.WorkItem | None:
        """The pod or gang that devices are reserved for."""
        return write_pool.WorkItem(self.plan.kind, self.plan.key) if self.plan is not None else None

    def refresh(self) -> bool:
        """Drop an expired plan, or one whose holder is not pending; True if there was one."""
        plan, item = self.plan, self.item
        if plan is None or item is None:
            return False
        if self._context.memory.waiting.get(item) is None:
            self.drop()
            return True
        if plan.until > self._context.clock.now():
            return False
        rest_end = self._context.clock.monotonic() + self._rules.hold_s
        if plan.reason is backfill_plan.PlanReason.STARVED:
            self._rest_end = rest_end
        else:
            self._rests[item] = rest_end
        self.drop()
        _log.info("plan over", holder=plan.key, why=plan.reason.value)
        return True

    def release(self) -> None:
        """Begin a pass: workloads ahead in line may use the devices until `hold`."""
        self._search_count = 0
        self._held_by = None
        moment = self._context.clock.monotonic()
        self._rests = {item: end for item, end in self._rests.items() if end > moment}
        waiting = self._context.memory.waiting
        self._searches = {item: look for item, look in self._searches.items() if item in waiting}
        self._stale &= self._searches.keys()
        if self.plan is not None:
            self._context.view.set_reserved_devices(KEY, None)

    def hold(self) -> None:
        """Hold the devices against workloads behind in line."""
        if self.plan is not None:
            self._context.view.set_reserved_devices(KEY, term.held_allocation(self.plan.devices))

    def block(self, item: write_pool.WorkItem) -> None:
        """Hold the devices for an item against workloads behind it, for the rest of the pass."""
        self._held_by = item
        self.hold()

    @property
    def is_blocking(self) -> bool:
        """True if a workload ahead in line holds capacity in this pass, or did in the last."""
        return self._held_by is not None

    def drop(self) -> None:
        """Drop the plan."""
        self.plan = self._start = None
        self._context.view.set_reserved_devices(KEY, None)

    def reserve(self, candidate: pending.PendingWorkload, *, starves: bool) -> bool:
        """Reserve the workload's earliest start. Returns False if it may have no plan."""
        plan = self._plan(candidate, starves=starves)
        if plan is None:
            if candidate.item == self.item:
                self.drop()
            return False
        if self.plan is None or (plan.key, plan.end) != (self.plan.key, self.plan.end):
            _log.debug("planned", item=candidate.item, until=plan.end, why=plan.reason.value)
        self.plan = plan
        self.block(candidate.item)
        return True

    def view_for(self, candidate: pending.PendingWorkload) -> snapshot.Snapshot | None:
        """Return the view with the plan's devices; None if the workload may not use them.

        It may if its declared run times end before the plan starts.
        """
        start, now = self._start, self._context.clock.now()
        if start is None or not self.is_blocking:
            return None
        if not all(term.ends_by(work.pod, start, now) for work in candidate.workloads):
            return None
        return reservation_overlay.WithoutReservations(self._context.view, [KEY])

    def starvation_bound_s(self, *, queues: bool) -> float | None:
        """Return the seconds after which a pending workload starves; None without a bound."""
        return self._rules.bound_s(queues=queues)

    def next_attempt(self, item: write_pool.WorkItem) -> float | None:
        """Return when (monotonic seconds) to search again for a workload without a plan."""
        look = self._searches.get(item)
        if item in self._stale and look is not None:
            return look.retry_at
        return self._rests.get(item)

    def expires_in_s(self) -> float | None:
        """Return the seconds until the plan, or the pause after it, ends; None without."""
        if self.plan is not None:
            return max((self.plan.until - self._context.clock.now()).total_seconds(), 0.0)
        left = self._rest_end - self._context.clock.monotonic()
        return left if left > 0.0 else None

    def _plan(
        self, candidate: pending.PendingWorkload, *, starves: bool
    ) -> backfill_plan.BackfillPlan | None:
        if candidate.item in self._rests:
            return None
        look = self._searches.get(candidate.item)
        if look is None or look.retry_at <= self._context.clock.monotonic():
            if self._search_count >= _MAX_SEARCHES:
                return None
            look = self._searches[candidate.item] = self._search(candidate, starves=starves)
        elif candidate.item == self.item:
            return self.plan
        else:
            self._stale.add(candidate.item)
        answer = look.start
        if answer is None:
            return None
        rests = self._rest_end > self._context.clock.monotonic()
        if answer.start is None and (rests or not starves):
            return None
        return self._bounded(candidate.item, answer)

    def _search(self, candidate: pending.PendingWorkload, *, starves: bool) -> _SearchResult:
        self._search_count += 1
        self._stale.discard(candidate.item)
        view, begun = self._context.view, self._context.clock.monotonic()
        now = self._context.clock.now()
        people = [
            person
            for unit in self._victims.all_victims(view).values()
            for person in unit.pods
            if starves or earliest_start.latest_end(person.pod, now) is not None
        ]
        ask = preemption_types.PreemptionRequest(
            view, candidate.workloads, self._context.settings.allocator, candidate.topology
        )
        answer = None
        if people:  # else what was refused just now starts at no known time
            answer = earliest_start.find_earliest_start(
                ask, people, now, step_budget.StepBudget(_STEPS)
            )
        ended = self._context.clock.monotonic()
        pause = _PAUSE_FACTOR * _MAX_SEARCHES * (ended - begun)
        if candidate.item == self.item:
            pause = max(_RETRY_S, _PAUSE_FACTOR * (ended - begun))
        return _SearchResult(ended + pause, answer)

    def _bounded(
        self, item: write_pool.WorkItem, answer: earliest_start.PlannedStart
    ) -> backfill_plan.BackfillPlan | None:
        """Return the plan with its end; None if it takes too much of the fleet."""
        view, now = self._context.view, self._context.clock.now()
        devices = device_plan.held_devices(view, answer.members)
        users = frozenset(holder.claim for held in devices for holder in view.holders(held.device))
        if answer.start is not None:
            until, why = (
                answer.start + dt.timedelta(seconds=_GRACE_S),
                backfill_plan.PlanReason.KNOWN_END,
            )
        elif self._is_small(devices):
            until, why = (
                now + dt.timedelta(seconds=self._rules.hold_s),
                backfill_plan.PlanReason.STARVED,
            )
        else:
            return None
        since, last = now, self.plan
        if last is not None and why is last.reason:
            # A round is one for all; an end that moves while some of the same work is in the way
            # was never known, whatever short work comes and goes beside it.
            mine = item == self.item
            since = last.since if mine else now
            if why is backfill_plan.PlanReason.STARVED or (mine and users & self._users):
                until = min(until, last.until)
        self._start, self._users = answer.start, users
        return backfill_plan.BackfillPlan(item.kind, item.key, devices, since, until, why)

    def _is_small(self, devices: Sequence[reservations.HeldDevice]) -> bool:
        results = term.held_allocation(devices)
        size = queue_resources.results_amounts(
            self._context.view, results.results if results else ()
        )
        fleet = queue_resources.capacity(self._context.view)
        return size.gpus <= self._rules.max_fraction * fleet.gpus
