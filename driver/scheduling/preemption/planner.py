"""plan: who goes so that a waiting pod or gang can be placed, and where it is placed then. Pure.

Of all that the law allows what throws the least GPU-seconds away is taken, then the fewest pods,
then the first by name. Steps are counted: past them the best that was found is told, and that it
may not be the least.
"""

from driver.scheduling.allocator import dra_allocator, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import step_budget
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import gang_plan, pod_plan, policy, victims
from driver.scheduling.preemption import types as preemption_types

MAX_STEPS = 50_000
"""About a second, where all of them are needed."""


class Planner:
    """Remembers what nodes are like: that makes the next plan quick and changes none."""

    def __init__(self, deciding: settings.Settings) -> None:
        self._deciding = deciding
        self._snapshot: object = None
        self._reset()

    def _reset(self) -> None:
        self._allocator = dra_allocator.Allocator(self._deciding)
        self._cache = gang_plan.PlanCache(self._deciding)

    def plan(
        self,
        ask: preemption_types.PreemptionRequest,
        right: policy.PreemptionPolicy,
        book: victims.VictimIndex,
        meter: step_budget.StepBudget | None = None,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        """All or nothing for all members; nobody leaves where they fit as it is.

        The view is left as it is. Pods that are being deleted have what they have: where their end
        is waited for, ask of the view without them (`absence.Absence`).
        """
        if ask.view is not self._snapshot:
            self._reset()
            self._snapshot = ask.view
        meter = step_budget.StepBudget(MAX_STEPS) if meter is None else meter
        if ask.single is None:
            return self._plan_gang(ask, right, book, meter)
        return self._plan_pod(ask, ask.single, right, book, meter)

    def _plan_gang(
        self,
        ask: preemption_types.PreemptionRequest,
        right: policy.PreemptionPolicy,
        book: victims.VictimIndex,
        meter: step_budget.StepBudget,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        if not ask.is_unschedulable:
            seated = gang_placement.place_gang(
                ask.members,
                ask.view,
                ask.topology_request,
                ask.allocator_settings,
                self._cache.fills,
            )
            if isinstance(seated, gang_types.GangPlacement):
                return preemption_types.Plan((), preemption_types.member_order(ask, seated))
            if seated.blocker is not None:
                return preemption_types.NoPlan(preemption_types.NoPlanReason.NOT_HELPFUL)
        if not right.preemptor.preempts:
            return preemption_types.NoPlan(preemption_types.NoPlanReason.NEVER)
        return gang_plan.Search(ask, right, book, self._cache, meter).result()

    def _plan_pod(
        self,
        ask: preemption_types.PreemptionRequest,
        workload: allocator_types.Workload,
        right: policy.PreemptionPolicy,
        book: victims.VictimIndex,
        meter: step_budget.StepBudget,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        if not ask.is_unschedulable:
            answer = self._allocator.decide(ask.view, workload)
            if isinstance(answer, allocator_types.Placement):
                return preemption_types.Plan((), (gang_types.MemberPlacement(workload, answer),))
        asked = pod_plan.workload_query(ask, workload, self._cache.policies)
        if asked is None:
            return preemption_types.NoPlan(preemption_types.NoPlanReason.NOT_HELPFUL)
        if not right.preemptor.preempts:
            return preemption_types.NoPlan(preemption_types.NoPlanReason.NEVER)
        return pod_plan.Search(ask, asked, right, book, self._cache.blockers, meter).result()


def make_plan(
    ask: preemption_types.PreemptionRequest,
    right: policy.PreemptionPolicy,
    book: victims.VictimIndex,
    meter: step_budget.StepBudget | None = None,
) -> preemption_types.Plan | preemption_types.NoPlan:
    """A plan without remembering anything."""
    return Planner(ask.allocator_settings).plan(ask, right, book, meter)
