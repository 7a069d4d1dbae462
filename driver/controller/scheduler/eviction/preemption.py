"""Making room by preemption: a plan, what it needs held first, and then the evictions (D7)."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from driver import clock, reasons
from driver.api import crd
from driver.api import reservations as api
from driver.controller.scheduler import pending, state
from driver.controller.scheduler import results as scheduler_results
from driver.controller.scheduler.eviction import evictions
from driver.controller.scheduler.eviction import reservations as eviction_reservations
from driver.resources import disruption_budgets, reservations
from driver.resources.core import pods
from driver.scheduling.allocator import settings
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
_MOST = 8
"""Preemptions at one time."""
_PAUSE = 4.0
"""After a plan none is made for so many times what it took: a fifth of the time at most."""
_LATER_S = 30.0
_PASSING = frozenset({reasons.Reason.RAN_TOO_SHORTLY, reasons.Reason.DISRUPTION_BUDGET})
"""Why somebody may not go now and may later, without anything of ours changing: looked at again."""
_NOBODY = 1 << 40
"""Above every priority."""
_PATIENT_S = 5.0
"""What found nobody to evict looks again after so long at the earliest."""


class QueueStates:
    """The queues as the law of preemption reads them, as of one moment."""

    def __init__(
        self,
        known: state.SchedulerContext,
        fair: engine.QueueEngine,
        book: preemption_victims.VictimIndex,
    ) -> None:
        self._known = known
        self._engine = fair
        self._book = book
        self._leaves: dict[str, preemption_policy.QueueState] = {}

    def queue_state(self, pod: pods.Pod) -> preemption_policy.QueueState:
        """The queue of a pod."""
        if self._engine.tree.is_implicit_only:
            return preemption_policy.QueueState()
        name = self._engine.pod_queue(pod)
        queue = self._engine.queue(name)
        if name not in self._leaves:
            self._leaves[name] = preemption_policy.QueueState(
                name, queue.preemptible, queue.reclaim, queue.min_run_s, self._engine.surplus(name)
            )
        leaf = self._leaves[name]
        wanted = queue.idle
        if wanted is None or wanted.action != "preferAsVictim":
            return leaf
        return replace(leaf, is_idle=self._idle_s(pod) >= wanted.after_s)

    def _idle_s(self, pod: pods.Pod) -> float:
        """For how long it did nothing, as far as that is known."""
        unit = self._book.all_victims(self._known.view).get(preemption_victims.victim_key(pod))
        since = idle.idle_since(unit, self._known.stores.claims.get) if unit is not None else None
        return (self._known.clock.now() - since).total_seconds() if since is not None else 0.0


class Preemption:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.SchedulerContext,
        fair: engine.QueueEngine,
        kept: eviction_reservations.ReservationController,
        placer: scheduler_results.ResultHandler,
        deciding: settings.Settings,
    ) -> None:
        self._known = known
        self._engine = fair
        self.reservations = kept
        self.results = placer
        self.settings = deciding
        self.victims = preemption_victims.VictimIndex()
        self._planner = planner.Planner(deciding)
        self._next: dict[write_pool.WorkItem, float] = {}
        self._told: dict[write_pool.WorkItem, str] = {}
        self._free = 0.0
        self._least = (-1, _NOBODY)

    def try_preempt(self, one: pending.PendingWorkload, leaf: str) -> float | None:
        """Have pods make room for a candidate that found none, if they may go for it.

        Seconds until it is worth another look, where time alone may change the answer.
        """
        moment = self._known.clock.monotonic()
        if not self._may(one):
            return None
        until = max(self._next.get(one.item, 0.0), self._free)
        if until > moment:
            return until - moment
        if self.reservations.evicting_count() >= _MOST:
            return _PATIENT_S
        self._forget()
        self._next[one.item] = moment + _PATIENT_S
        right = self._law(one, leaf)
        ask = preemption_types.PreemptionRequest(
            self._known.view, one.workloads, self.settings, one.topology, is_unschedulable=True
        )
        found = self._planner.plan(ask, right, self.victims, step_budget.StepBudget(_STEPS))
        ended = self._known.clock.monotonic()
        self._free = ended + _PAUSE * (ended - moment)
        if isinstance(found, preemption_types.NoPlan):
            self._in_vain(one, found)
            return _LATER_S if found.ineligible.keys() & _PASSING else None
        if found.victims:
            self._go(one, found, right)
        return None

    def _forget(self) -> None:
        """What does not wait any more."""
        waiting = self._known.memory.waiting
        if len(self._next) > 2 * len(waiting) + _MOST:
            self._next = {item: at for item, at in self._next.items() if item in waiting}
            self._told = {item: said for item, said in self._told.items() if item in waiting}

    def _in_vain(self, one: pending.PendingWorkload, found: preemption_types.NoPlan) -> None:
        """Say once why nobody goes for it, where there is anybody at all."""
        said = plan_words.no_plan_message(found)
        if found.ineligible and self._told.get(one.item) != said:
            self._told[one.item] = said
            for work in one.workloads:
                self.results.report_event(
                    work.pod, work.open_claims, reasons.Reason.PREEMPTION_IN_VAIN, said
                )

    def _may(self, one: pending.PendingWorkload) -> bool:
        if not all(work.pod.preempts for work in one.workloads):
            return False
        if self.reservations.has_pending_eviction(one):
            return False
        return not self._engine.tree.is_implicit_only or self._lowest() < one.priority

    def _lowest(self) -> int:
        """The lowest priority of all that has something."""
        mark, known = self._least
        if mark != self._known.view.revision:
            there = self.victims.all_victims(self._known.view).values()
            known = min((unit.priority for unit in there), default=_NOBODY)
            self._least = self._known.view.revision, known
        return known

    def _law(self, one: pending.PendingWorkload, leaf: str) -> preemption_policy.PreemptionPolicy:
        asked = self._engine.requested_amounts(self._known.view, one.open_claims)
        preemptor = preemption_policy.Preemptor(
            one.priority,
            "" if self._engine.tree.is_implicit_only else leaf,
            preempts=True,
            is_within_fair_share=self._engine.is_within_fair_share(leaf, asked),
            own_victims=frozenset(
                preemption_victims.victim_key(work.pod) for work in one.workloads
            ),
        )
        guards = disruption_budgets.Guards(self._known.stores.budgets.snapshot().values())
        leaves = QueueStates(self._known, self._engine, self.victims)
        idles = any(each.idle is not None for each in self._engine.tree.accepted.values())
        return preemption_policy.PreemptionPolicy(
            preemptor, leaves, guards, self._known.clock.now(), idles=idles
        )

    def _go(
        self,
        one: pending.PendingWorkload,
        found: preemption_types.Plan,
        right: preemption_policy.PreemptionPolicy,
    ) -> None:
        """What it needs is held first; the evictions follow once that is written."""
        name = f"pod {one.first.key}" if one.gang is None else f"gang {one.gang.key}"
        held = device_plan.held_devices(self._known.view, found.members)
        said = {
            tenant.pod.uid: plan_words.victim_message(found, judged, right, name)
            for judged in found.victims
            for tenant in judged.victim.pods
        }
        victims = tuple(
            reservations.Victim(tenant.pod.namespace, tenant.pod.name, tenant.pod.uid)
            for judged in found.victims
            for tenant in judged.victim.pods
        )
        made = _reservation(one, victims, self._known.clock.now())
        message = plan_words.preemptor_message(found, right)
        _log.info("preempting", item=one.item, victims=[*found.pods], lost_s=found.lost_s)
        self.reservations.create_for_eviction(made, held, evictions.EvictionMessages(said))
        for work in one.workloads:
            self.results.report(work.pod, work.open_claims, reasons.Reason.PREEMPTING, message)


def _reservation(
    one: pending.PendingWorkload, victims: Sequence[reservations.Victim], now: dt.datetime
) -> reservations.Reservation:
    first = one.first
    gang = one.gang is not None
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
