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

STEPS = 50_000
"""About a second, where all of them are needed."""


class Planner:
    """Remembers what nodes are like: that makes the next plan quick and changes none."""

    def __init__(self, deciding: settings.Settings) -> None:
        self._deciding = deciding
        self._view: object = None
        self._forget()

    def _forget(self) -> None:
        self._allocator = dra_allocator.Allocator(self._deciding)
        self._known = gang_plan.Known(self._deciding)

    def plan(
        self,
        ask: preemption_types.Ask,
        right: policy.Law,
        book: victims.Book,
        meter: step_budget.Meter | None = None,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        """All or nothing for all members; nobody leaves where they fit as it is.

        The view is left as it is. Pods that are being deleted have what they have: where their end
        is waited for, ask of the view without them (`absence.Absence`).
        """
        if ask.view is not self._view:
            self._forget()
            self._view = ask.view
        meter = step_budget.Meter(STEPS) if meter is None else meter
        if ask.single is None:
            return self._together(ask, right, book, meter)
        return self._alone(ask, ask.single, right, book, meter)

    def _together(
        self,
        ask: preemption_types.Ask,
        right: policy.Law,
        book: victims.Book,
        meter: step_budget.Meter,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        if not ask.refused:
            seated = gang_placement.place(
                ask.members, ask.view, ask.near, ask.deciding, self._known.told
            )
            if isinstance(seated, gang_types.Seated):
                return preemption_types.Plan((), preemption_types.in_order(ask, seated))
            if seated.blocker is not None:
                return preemption_types.NoPlan(preemption_types.Why.IN_VAIN)
        if not right.preemptor.preempts:
            return preemption_types.NoPlan(preemption_types.Why.NEVER)
        return gang_plan.Search(ask, right, book, self._known, meter).answer()

    def _alone(
        self,
        ask: preemption_types.Ask,
        workload: allocator_types.Workload,
        right: policy.Law,
        book: victims.Book,
        meter: step_budget.Meter,
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        if not ask.refused:
            answer = self._allocator.decide(ask.view, workload)
            if isinstance(answer, allocator_types.Placement):
                return preemption_types.Plan((), (gang_types.Seat(workload, answer),))
        asked = pod_plan.asked(ask, workload, self._known.judges)
        if asked is None:
            return preemption_types.NoPlan(preemption_types.Why.IN_VAIN)
        if not right.preemptor.preempts:
            return preemption_types.NoPlan(preemption_types.Why.NEVER)
        return pod_plan.Search(ask, asked, right, book, self._known.grounds, meter).answer()


def plan(
    ask: preemption_types.Ask,
    right: policy.Law,
    book: victims.Book,
    meter: step_budget.Meter | None = None,
) -> preemption_types.Plan | preemption_types.NoPlan:
    """A plan without remembering anything."""
    return Planner(ask.deciding).plan(ask, right, book, meter)
