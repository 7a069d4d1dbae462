"""Where and when a waiting pod or gang starts soonest if nobody is evicted: what is kept. Pure.

A pod ends at the latest when the run time that it declared is over. Of pods that declare none the
end is not known: only where those that do leave too little room it is waited for as few of the
others as could be found.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import cost, holders, step_budget, victim_search, without_pods
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import tentative
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.preemption import victims


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """What each member gets, and when all of it is free: None where that is not known.

    `waits_for` are the pods without a known end that have to end before, by name; `least`: one
    fewer would not do.
    """

    members: tuple[gang_types.MemberPlacement, ...]
    start: dt.datetime | None
    waits_for: tuple[ids.Key, ...] = ()
    is_optimal: bool = True

    @property
    def assignments(self) -> Mapping[ids.NodeName, tuple[allocator_types.DeviceAssignment, ...]]:
        """The devices to keep, by node."""
        found: dict[ids.NodeName, tuple[allocator_types.DeviceAssignment, ...]] = {}
        for seat in self.members:
            node = seat.placement.node
            found[node] = (*found.get(node, ()), *seat.placement.assignments)
        return found


def find_earliest_start(
    ask: preemption_types.PreemptionRequest,
    people: Iterable[holders.DeviceHolder],
    now: dt.datetime,
    meter: step_budget.StepBudget,
) -> PlannedStart | None:
    """None where it would fit at no time, whoever ends; or the steps ended."""
    mine = [
        one
        for one in people
        if one.pod.uid not in ask.uids and not holders.returns_to_node(one.pod)
    ]
    ends = {one.key: latest_end(one.pod, now) for one in mine}
    known = sorted(
        (one for one in mine if ends[one.key] is not None),
        key=lambda one: (ends[one.key] or now, one.key),
    )
    unknown = sorted(
        (one for one in mine if ends[one.key] is None),
        key=lambda one: (victims.start_time(one.pod) or 0.0, one.key),
    )
    return _Search(ask, known, unknown, meter).result(lambda one: ends[one.key] or now, now)


def latest_end(pod: pods.Pod, now: dt.datetime) -> dt.datetime | None:
    """When a pod ends at the latest; not before `now`. None: not known.

    One that is being deleted ends now; one that has not started yet as if it started now.
    """
    if pod.deleting:
        return now
    if pod.most_s is None:
        return None
    started = victims.parse_time(pod.started)
    since = now.timestamp() if started is None else started
    return dt.datetime.fromtimestamp(max(since + pod.most_s, now.timestamp()), dt.UTC)


class _Search:
    """More who are gone never fit worse, so that halving finds the first that do."""

    def __init__(
        self,
        ask: preemption_types.PreemptionRequest,
        known: Sequence[holders.DeviceHolder],
        unknown: Sequence[holders.DeviceHolder],
        meter: step_budget.StepBudget,
    ) -> None:
        self._request = ask
        self._known_ends = known
        self._unknown_ends = unknown
        self._budget = meter
        self._fill_cache = tentative.FillCache()

    def result(
        self, ends: Callable[[holders.DeviceHolder], dt.datetime], now: dt.datetime
    ) -> PlannedStart | None:
        seats = self._place_without(self._known_ends)
        if seats is None:
            return self._after_unknown_ends()
        if not self._known_ends:
            return PlannedStart(seats, now)
        count = self._fewest_gone(self._known_ends, ())
        # All who end at that moment are gone then.
        start = ends(self._known_ends[count - 1]) if count else now
        gone = [one for one in self._known_ends if ends(one) <= start]
        found = self._place_without(gone if count else ())
        return PlannedStart(found or seats, start)

    def _after_unknown_ends(self) -> PlannedStart | None:
        """The longest running first, as many as it takes; then without those who may stay."""
        if self._place_without([*self._known_ends, *self._unknown_ends]) is None:
            return None
        alone = self._single_node_start()
        if alone is not None:
            return alone
        count = self._fewest_gone(self._unknown_ends, self._known_ends)
        gone = [*self._unknown_ends[:count]]
        for one in self._unknown_ends[:count]:
            if self._budget.is_spent:
                break
            fewer = [other for other in gone if other is not one]
            if self._place_without([*self._known_ends, *fewer]) is not None:
                gone = fewer
        seats = self._place_without([*self._known_ends, *gone])
        if seats is None:
            return None
        least = not self._budget.is_spent
        return PlannedStart(seats, None, tuple(sorted(one.key for one in gone)), least)

    def _single_node_start(self) -> PlannedStart | None:
        """For one pod, where the fewest have to end; None where the steps ended."""
        ask, view = self._request, without_pods.WithoutPods(self._request.view, self._known_ends)
        asked = (
            step_budget.workload_query(view, ask.single, ask.allocator_settings)
            if ask.single
            else None
        )
        if asked is None or self._budget.is_spent:
            return None
        search = victim_search.Search(view, asked, cost.FewestPods(view), self._budget)
        there = [
            (view.nodes[name], [one for one in self._unknown_ends if one.node == name])
            for name in sorted(
                {one.node for one in self._unknown_ends} - {*asked.workload.avoided_nodes}
            )
            if name in view.nodes
        ]
        best = victim_search.find_best(search, there)
        if best.victims is None:
            return None
        without = without_pods.WithoutPods(view, best.victims.victims)
        picks = asked.assignments(without, view.nodes[best.victims.node], best.victims.fit)
        placement = allocator_types.Placement(
            best.victims.node, picks, "once those in its way have ended"
        )
        seat = gang_types.MemberPlacement(asked.workload, placement)
        return PlannedStart(
            (seat,), None, best.victims.names, best.victims.is_optimal and best.is_exhaustive
        )

    def _fewest_gone(
        self, found: Sequence[holders.DeviceHolder], gone: Sequence[holders.DeviceHolder]
    ) -> int:
        """How many of those in order have to go, beside some who are gone."""
        low, high = 0, len(found)
        while low < high:
            middle = (low + high) // 2
            if self._place_without([*gone, *found[:middle]]) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _place_without(
        self, gone: Sequence[holders.DeviceHolder]
    ) -> tuple[gang_types.MemberPlacement, ...] | None:
        """In the view without these. What nodes told before is remembered from view to view."""
        ask = self._request
        self._budget.spend(step_budget.EVALUATE_STEPS * len(ask.members))
        view = without_pods.WithoutPods(ask.view, gone)
        seated = gang_placement.place_gang(
            ask.members, view, ask.topology_request, ask.allocator_settings, self._fill_cache
        )
        return (
            preemption_types.member_order(ask, seated)
            if isinstance(seated, gang_types.GangPlacement)
            else None
        )
