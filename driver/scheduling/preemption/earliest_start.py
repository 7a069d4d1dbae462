"""Earliest start of a pending pod or gang without evictions, and the devices to reserve. Pure.

A pod ends at the latest when its declared run time is over. The end of a pod without one is not
known: only if the others leave too little room, as few of these as could be found are waited for.
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
    """Devices of each member, and when all of them are free: None if that is not known.

    `waits_for` are the pods without a known end that have to end before, by name; `is_optimal`: one
    fewer would not suffice.
    """

    members: tuple[gang_types.MemberPlacement, ...]
    start: dt.datetime | None
    waits_for: tuple[ids.Key, ...] = ()
    is_optimal: bool = True

    @property
    def assignments(self) -> Mapping[ids.NodeName, tuple[allocator_types.DeviceAssignment, ...]]:
        """Devices to reserve, by node."""
        by_node: dict[ids.NodeName, tuple[allocator_types.DeviceAssignment, ...]] = {}
        for member in self.members:
            node = member.placement.node
            by_node[node] = (*by_node.get(node, ()), *member.placement.assignments)
        return by_node


def find_earliest_start(
    request: preemption_types.PreemptionRequest,
    all_holders: Iterable[holders.DeviceHolder],
    now: dt.datetime,
    budget: step_budget.StepBudget,
) -> PlannedStart | None:
    """Return the earliest start; None if it never fits, or the steps ended."""
    others = [
        holder
        for holder in all_holders
        if holder.pod.uid not in request.uids and not holders.returns_to_node(holder.pod)
    ]
    ends = {holder.key: latest_end(holder.pod, now) for holder in others}
    known_ends = sorted(
        (holder for holder in others if ends[holder.key] is not None),
        key=lambda holder: (ends[holder.key] or now, holder.key),
    )
    unknown = sorted(
        (holder for holder in others if ends[holder.key] is None),
        key=lambda holder: (victims.start_time(holder.pod) or 0.0, holder.key),
    )
    return _Search(request, known_ends, unknown, budget).result(
        lambda holder: ends[holder.key] or now, now
    )


def latest_end(pod: pods.Pod, now: dt.datetime) -> dt.datetime | None:
    """Return when a pod ends at the latest; not before `now`. None: not known.

    A terminating pod ends now; a pod that has not started counts as starting now.
    """
    if pod.deleting:
        return now
    if pod.max_runtime_s is None:
        return None
    started = victims.parse_time(pod.started)
    since = now.timestamp() if started is None else started
    return dt.datetime.fromtimestamp(max(since + pod.max_runtime_s, now.timestamp()), dt.UTC)


class _Search:
    """Search by bisection: with more pods gone nothing fits worse."""

    def __init__(
        self,
        request: preemption_types.PreemptionRequest,
        known_ends: Sequence[holders.DeviceHolder],
        unknown_ends: Sequence[holders.DeviceHolder],
        budget: step_budget.StepBudget,
    ) -> None:
        self._request = request
        self._known_ends = known_ends
        self._unknown_ends = unknown_ends
        self._budget = budget
        self._fill_cache = tentative.FillCache()

    def result(
        self, ends: Callable[[holders.DeviceHolder], dt.datetime], now: dt.datetime
    ) -> PlannedStart | None:
        members = self._place_without(self._known_ends)
        if members is None:
            return self._after_unknown_ends()
        if not self._known_ends:
            return PlannedStart(members, now)
        count = self._fewest_gone(self._known_ends, ())
        # All pods that end at that moment are gone then.
        start = ends(self._known_ends[count - 1]) if count else now
        gone = [holder for holder in self._known_ends if ends(holder) <= start]
        placed = self._place_without(gone if count else ())
        return PlannedStart(placed or members, start)

    def _after_unknown_ends(self) -> PlannedStart | None:
        """Return a start after unknown ends: longest running pods first, then without spares."""
        if self._place_without([*self._known_ends, *self._unknown_ends]) is None:
            return None
        single = self._single_node_start()
        if single is not None:
            return single
        count = self._fewest_gone(self._unknown_ends, self._known_ends)
        gone = [*self._unknown_ends[:count]]
        for holder in self._unknown_ends[:count]:
            if self._budget.is_spent:
                break
            fewer = [other for other in gone if other is not holder]
            if self._place_without([*self._known_ends, *fewer]) is not None:
                gone = fewer
        members = self._place_without([*self._known_ends, *gone])
        if members is None:
            return None
        least = not self._budget.is_spent
        return PlannedStart(members, None, tuple(sorted(holder.key for holder in gone)), least)

    def _single_node_start(self) -> PlannedStart | None:
        """Return the start of one pod with the fewest unknown ends; None if the steps ended."""
        request, view = (
            self._request,
            without_pods.WithoutPods(self._request.view, self._known_ends),
        )
        query = (
            step_budget.workload_query(view, request.single, request.allocator_settings)
            if request.single
            else None
        )
        if query is None or self._budget.is_spent:
            return None
        search = victim_search.Search(view, query, cost.FewestPods(view), self._budget)
        candidates = [
            (view.nodes[name], [holder for holder in self._unknown_ends if holder.node == name])
            for name in sorted(
                {holder.node for holder in self._unknown_ends} - {*query.workload.avoided_nodes}
            )
            if name in view.nodes
        ]
        best = victim_search.find_best(search, candidates)
        if best.victims is None:
            return None
        without = without_pods.WithoutPods(view, best.victims.victims)
        placement = query.placement(
            without,
            view.nodes[best.victims.node],
            best.victims.fit,
            "once those in its way have ended",
        )
        member = gang_types.MemberPlacement(query.workload, placement)
        return PlannedStart(
            (member,), None, best.victims.names, best.victims.is_optimal and best.is_exhaustive
        )

    def _fewest_gone(
        self, ordered: Sequence[holders.DeviceHolder], removed: Sequence[holders.DeviceHolder]
    ) -> int:
        """Return how many pods, in order, have to go beside those that are gone."""
        low, high = 0, len(ordered)
        while low < high:
            middle = (low + high) // 2
            if self._place_without([*removed, *ordered[:middle]]) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _place_without(
        self, removed: Sequence[holders.DeviceHolder]
    ) -> tuple[gang_types.MemberPlacement, ...] | None:
        """Return the placement without these pods. Node results are cached between snapshots."""
        request = self._request
        self._budget.spend(step_budget.EVALUATE_STEPS * len(request.members))
        view = without_pods.WithoutPods(request.view, removed)
        placement = gang_placement.place_gang(
            request.members,
            view,
            request.topology_request,
            request.allocator_settings,
            self._fill_cache,
        )
        return (
            preemption_types.member_order(request, placement)
            if isinstance(placement, gang_types.GangPlacement)
            else None
        )
