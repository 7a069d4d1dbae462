"""Preemption planner: victims for a pending pod or gang, and its placement then. Pure.

Of all eligible victims those with the fewest GPU-seconds lost are taken, then the fewest pods, then
the first by name. Steps are counted: past them the best plan so far is returned, not known to be
optimal.
"""

from driver.scheduling.allocator import dra_allocator, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import step_budget
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import gang_plan, pod_plan, policy, victims
from driver.scheduling.preemption import types as preemption_types

MAX_STEPS = 50_000
"""About 1 s if all of them are needed."""


class Planner:
    """Caches what nodes are like: that makes the next plan quick and changes none."""

    def __init__(self, allocator_settings: settings.Settings) -> None:
        self._deciding = allocator_settings
        self._snapshot: object = None
        self._reset()

    def _reset(self) -> None:
        self._allocator = dra_allocator.Allocator(self._deciding)
        self._cache = gang_plan.PlanCache(self._deciding)

    def plan(
        self,
        request: preemption_types.PreemptionRequest,
        eviction_policy: policy.PreemptionPolicy,
        victim_index: victims.VictimIndex,
        budget: step_budget.StepBudget | None = None,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        """Plan for all members or none; without victims if they fit as it is.

        The snapshot is not modified. Terminating pods still have their devices: to wait for their
        end, pass a snapshot without them (`without_pods.WithoutPods`).
        """
        if request.view is not self._snapshot:
            self._reset()
            self._snapshot = request.view
        budget = step_budget.StepBudget(MAX_STEPS) if budget is None else budget
        if request.single is None:
            return self._plan_gang(request, eviction_policy, victim_index, budget)
        return self._plan_pod(request, request.single, eviction_policy, victim_index, budget)

    def _plan_gang(
        self,
        request: preemption_types.PreemptionRequest,
        eviction_policy: policy.PreemptionPolicy,
        victim_index: victims.VictimIndex,
        budget: step_budget.StepBudget,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        if not request.is_unschedulable:
            placement = gang_placement.place_gang(
                request.members,
                request.view,
                request.topology_request,
                request.allocator_settings,
                self._cache.fills,
            )
            if isinstance(placement, gang_types.GangPlacement):
                return preemption_types.Plan((), preemption_types.member_order(request, placement))
            if placement.blocker is not None:
                return preemption_types.NoPlan(preemption_types.NoPlanReason.NOT_HELPFUL)
        if not eviction_policy.preemptor.preempts:
            return preemption_types.NoPlan(preemption_types.NoPlanReason.NEVER)
        return gang_plan.Search(
            request, eviction_policy, victim_index, self._cache, budget
        ).result()

    def _plan_pod(
        self,
        request: preemption_types.PreemptionRequest,
        workload: allocator_types.Workload,
        eviction_policy: policy.PreemptionPolicy,
        victim_index: victims.VictimIndex,
        budget: step_budget.StepBudget,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        if not request.is_unschedulable:
            result = self._allocator.decide(request.view, workload)
            if isinstance(result, allocator_types.Placement):
                return preemption_types.Plan((), (gang_types.MemberPlacement(workload, result),))
        query = pod_plan.workload_query(request, workload, self._cache.policies)
        if query is None:
            return preemption_types.NoPlan(preemption_types.NoPlanReason.NOT_HELPFUL)
        if not eviction_policy.preemptor.preempts:
            return preemption_types.NoPlan(preemption_types.NoPlanReason.NEVER)
        return pod_plan.Search(
            request, query, eviction_policy, victim_index, self._cache.blockers, budget
        ).result()


def make_plan(
    request: preemption_types.PreemptionRequest,
    eviction_policy: policy.PreemptionPolicy,
    victim_index: victims.VictimIndex,
    budget: step_budget.StepBudget | None = None,
) -> preemption_types.Plan | preemption_types.NoPlan:
    """Return a plan, without a cache."""
    return Planner(request.allocator_settings).plan(request, eviction_policy, victim_index, budget)
