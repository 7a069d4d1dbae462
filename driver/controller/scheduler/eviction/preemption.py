"""Preemption: plans victims, reserves the devices, then evicts (D7)."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from driver import clock, reasons
from driver.api import crd
from driver.api import reservations as api
from driver.controller.scheduler import pending, state
from driver.controller.scheduler.eviction import evictions
from driver.controller.scheduler.eviction import reservations as eviction_reservations
from driver.controller.scheduler.explain import pending_reporter
from driver.resources import disruption_budgets, reservations
from driver.resources.core import pods
from driver.scheduling.explain import step_budget
from driver.scheduling.preemption import idle, planner
from driver.scheduling.preemption import messages as plan_words
from driver.scheduling.preemption import policy as preemption_policy
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.preemption import victims as preemption_victims
from driver.scheduling.queues import engine
from driver.scheduling.reservations import device_plan

if TYPE_CHECKING:
    from driver.controller.commit import write_pool

_log = structlog.get_logger(__name__)
TTL = "10m"
"""Within it the victims' devices are free and the preemptor has them, or it is given up."""
_STEPS = 10_000
"""Of one plan: about a fifth of a second."""
_MAX_PREEMPTIONS = 8
"""Preemptions at one time."""
_PAUSE = 4.0
"""After a plan none is made for so many times what it took: a fifth of the time at most."""
_LATER_S = 30.0
_TEMPORARY = frozenset({reasons.Reason.MIN_RUNTIME_NOT_REACHED, reasons.Reason.DISRUPTION_BUDGET})
"""Why somebody may not go now and may later, without anything of ours changing: looked at again."""
_NO_PRIORITY = 1 << 40
"""Above every priority."""
_RETRY_S = 5.0
"""What found nobody to evict looks again after so long at the earliest."""


class QueueStates:
    """Queue states for the preemption policy, as of one moment."""

    def __init__(
        self,
        context: state.SchedulerContext,
        fair: engine.QueueEngine,
        book: preemption_victims.VictimIndex,
    ) -> None:
        self._context = context
        self._engine = fair
        self._victims = book
        self._states: dict[str, preemption_policy.QueueState] = {}

    def queue_state(self, pod: pods.Pod) -> preemption_policy.QueueState:
        """The queue of a pod."""
        if self._engine.tree.is_implicit_only:
            return preemption_policy.QueueState()
        name = self._engine.pod_queue(pod)
        queue = self._engine.queue(name)
        if name not in self._states:
            self._states[name] = preemption_policy.QueueState(
                name,
                queue.preemptible,
                queue.reclaim,
                queue.min_runtime_s,
                self._engine.surplus(name),
            )
        leaf = self._states[name]
        idle_reclaim = queue.idle
        if idle_reclaim is None or idle_reclaim.action != "preferAsVictim":
            return leaf
        return replace(leaf, is_idle=self._idle_s(pod) >= idle_reclaim.after_s)

    def _idle_s(self, pod: pods.Pod) -> float:
        """Return how long the pod's GPUs were idle, 0 if unknown."""
        unit = self._victims.all_victims(self._context.view).get(self._victims.victim_key(pod))
        since = idle.idle_since(unit, self._context.stores.claims.get) if unit is not None else None
        return (self._context.clock.now() - since).total_seconds() if since is not None else 0.0


class Preemption:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        fair: engine.QueueEngine,
        book: preemption_victims.VictimIndex,
        reservation_controller: eviction_reservations.ReservationController,
        reporter: pending_reporter.PendingReporter,
    ) -> None:
        self._context = context
        self._engine = fair
        self._victims = book
        self._reservations = reservation_controller
        self._reporter = reporter
        self._planner = planner.Planner(context.settings.allocator)
        self._retry_at: dict[write_pool.WorkItem, float] = {}
        self._reported: dict[write_pool.WorkItem, str] = {}
        self._paused_until = 0.0
        self._lowest_priority = (-1, _NO_PRIORITY)

    def try_preempt(self, workload: pending.PendingWorkload, leaf: str) -> None:
        """Preempt pods for a workload that fits nowhere, if policy allows it.

        Records when to try again, where time alone may change the result.
        """
        again_s = self._try_preempt(workload, leaf)
        if again_s is not None:
            end = self._context.clock.monotonic() + again_s
            self._context.memory.retry_at[workload.item] = end

    def _try_preempt(self, workload: pending.PendingWorkload, leaf: str) -> float | None:
        moment = self._context.clock.monotonic()
        if not self._may_preempt(workload):
            return None
        until = max(self._retry_at.get(workload.item, 0.0), self._paused_until)
        if until > moment:
            return until - moment
        if self._reservations.evicting_count() >= _MAX_PREEMPTIONS:
            return _RETRY_S
        self._forget()
        self._retry_at[workload.item] = moment + _RETRY_S
        right = self._build_policy(workload, leaf)
        ask = preemption_types.PreemptionRequest(
            self._context.view,
            workload.workloads,
            self._context.settings.allocator,
            workload.topology,
            is_unschedulable=True,
        )
        plan = self._planner.plan(ask, right, self._victims, step_budget.StepBudget(_STEPS))
        ended = self._context.clock.monotonic()
        self._paused_until = ended + _PAUSE * (ended - moment)
        if isinstance(plan, preemption_types.NoPlan):
            self._report_not_helpful(workload, plan)
            return _LATER_S if plan.ineligible.keys() & _TEMPORARY else None
        if plan.victims:
            self._preempt(workload, plan, right)
        return None

    def _forget(self) -> None:
        """Forget workloads that are not pending any more."""
        waiting = self._context.memory.waiting
        if len(self._retry_at) > 2 * len(waiting) + _MAX_PREEMPTIONS:
            self._retry_at = {
                item: time for item, time in self._retry_at.items() if item in waiting
            }
            self._reported = {
                item: message for item, message in self._reported.items() if item in waiting
            }

    def _report_not_helpful(
        self, workload: pending.PendingWorkload, outcome: preemption_types.NoPlan
    ) -> None:
        """Report once why preemption does not help, where there are candidates."""
        message = plan_words.no_plan_message(outcome)
        if outcome.ineligible and self._reported.get(workload.item) != message:
            self._reported[workload.item] = message
            for work in workload.workloads:
                self._reporter.event(
                    work.pod, work.open_claims, reasons.Reason.PREEMPTION_NOT_HELPFUL, message
                )

    def _may_preempt(self, workload: pending.PendingWorkload) -> bool:
        if not all(work.pod.preempts for work in workload.workloads):
            return False
        if self._reservations.has_pending_eviction(workload):
            return False
        return (
            not self._engine.tree.is_implicit_only
            or self._find_lowest_priority() < workload.priority
        )

    def _find_lowest_priority(self) -> int:
        """Return the lowest priority of all running workloads."""
        mark, lowest = self._lowest_priority
        if mark != self._context.view.revision:
            running = self._victims.all_victims(self._context.view).values()
            lowest = min((unit.priority for unit in running), default=_NO_PRIORITY)
            self._lowest_priority = self._context.view.revision, lowest
        return lowest

    def _build_policy(
        self, workload: pending.PendingWorkload, leaf: str
    ) -> preemption_policy.PreemptionPolicy:
        requested = self._engine.requested_amounts(self._context.view, workload.open_claims)
        preemptor = preemption_policy.Preemptor(
            workload.priority,
            "" if self._engine.tree.is_implicit_only else leaf,
            preempts=True,
            is_within_fair_share=self._engine.is_within_fair_share(leaf, requested),
            own_victims=frozenset(
                self._victims.victim_key(work.pod) for work in workload.workloads
            ),
        )
        guards = disruption_budgets.BudgetIndex(self._context.stores.budgets.snapshot().values())
        leaves = QueueStates(self._context, self._engine, self._victims)
        idles = any(each.idle is not None for each in self._engine.tree.accepted.values())
        return preemption_policy.PreemptionPolicy(
            preemptor, leaves, guards, self._context.clock.now(), idles=idles
        )

    def _preempt(
        self,
        workload: pending.PendingWorkload,
        plan: preemption_types.Plan,
        right: preemption_policy.PreemptionPolicy,
    ) -> None:
        """Reserve the devices; the evictions follow once that is written."""
        name = f"pod {workload.first.key}" if workload.gang is None else f"gang {workload.gang.key}"
        held = device_plan.held_devices(self._context.view, plan.members)
        messages = {
            tenant.pod.uid: plan_words.victim_message(plan, judged, right, name)
            for judged in plan.victims
            for tenant in judged.victim.pods
        }
        victims = tuple(
            reservations.Victim(tenant.pod.namespace, tenant.pod.name, tenant.pod.uid)
            for judged in plan.victims
            for tenant in judged.victim.pods
        )
        reservation = _reservation(workload, victims, self._context.clock.now())
        message = plan_words.preemptor_message(plan, right)
        _log.info("preempting", item=workload.item, victims=[*plan.pods], lost_s=plan.lost_s)
        self._reservations.create_for_eviction(
            reservation, held, evictions.EvictionMessages(messages)
        )
        for work in workload.workloads:
            self._reporter.report(work.pod, work.open_claims, reasons.Reason.PREEMPTING, message)


def _reservation(
    workload: pending.PendingWorkload, victims: Sequence[reservations.Victim], now: dt.datetime
) -> reservations.Reservation:
    first = workload.first
    gang = workload.gang is not None
    holder = api.Holder(
        gang=first.gang if gang else None,
        pod=None if gang else first.name,
        uid=None if gang else first.uid,
    )
    return reservations.Reservation(
        namespace=first.namespace,
        name=f"{eviction_reservations.PREEMPT}{first.uid}",
        uid="",
        version="",
        created=clock.rfc3339(now),
        holder=holder,
        ttl_s=crd.seconds(TTL),
        evicting=tuple(victims),
    )
