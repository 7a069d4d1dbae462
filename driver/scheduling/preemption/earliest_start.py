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
class Kept:
    """What each member gets, and when all of it is free: None where that is not known.

    `waits_for` are the pods without a known end that have to end before, by name; `least`: one
    fewer would not do.
    """

    seats: tuple[gang_types.Seat, ...]
    start: dt.datetime | None
    waits_for: tuple[ids.Key, ...] = ()
    least: bool = True

    @property
    def picks(self) -> Mapping[ids.NodeName, tuple[allocator_types.DeviceAssignment, ...]]:
        """The devices to keep, by node."""
        found: dict[ids.NodeName, tuple[allocator_types.DeviceAssignment, ...]] = {}
        for seat in self.seats:
            node = seat.placement.node
            found[node] = (*found.get(node, ()), *seat.placement.assignments)
        return found


def soonest(
    ask: preemption_types.Ask,
    people: Iterable[holders.Tenant],
    now: dt.datetime,
    meter: step_budget.Meter,
) -> Kept | None:
    """None where it would fit at no time, whoever ends; or the steps ended."""
    mine = [
        one for one in people if one.pod.uid not in ask.uids and not holders.comes_back(one.pod)
    ]
    ends = {one.key: end(one.pod, now) for one in mine}
    known = sorted(
        (one for one in mine if ends[one.key] is not None),
        key=lambda one: (ends[one.key] or now, one.key),
    )
    unknown = sorted(
        (one for one in mine if ends[one.key] is None),
        key=lambda one: (victims.since(one.pod) or 0.0, one.key),
    )
    return _Search(ask, known, unknown, meter).answer(lambda one: ends[one.key] or now, now)


def end(pod: pods.Pod, now: dt.datetime) -> dt.datetime | None:
    """When a pod ends at the latest; not before `now`. None: not known.

    One that is being deleted ends now; one that has not started yet as if it started now.
    """
    if pod.deleting:
        return now
    if pod.most_s is None:
        return None
    started = victims.moment(pod.started)
    since = now.timestamp() if started is None else started
    return dt.datetime.fromtimestamp(max(since + pod.most_s, now.timestamp()), dt.UTC)


class _Search:
    """More who are gone never fit worse, so that halving finds the first that do."""

    def __init__(
        self,
        ask: preemption_types.Ask,
        known: Sequence[holders.Tenant],
        unknown: Sequence[holders.Tenant],
        meter: step_budget.Meter,
    ) -> None:
        self._ask = ask
        self._known = known
        self._unknown = unknown
        self._meter = meter
        self._told = tentative.Known()

    def answer(
        self, ends: Callable[[holders.Tenant], dt.datetime], now: dt.datetime
    ) -> Kept | None:
        seats = self._seats(self._known)
        if seats is None:
            return self._waiting()
        if not self._known:
            return Kept(seats, now)
        count = self._fewest(self._known, ())
        # All who end at that moment are gone then.
        start = ends(self._known[count - 1]) if count else now
        gone = [one for one in self._known if ends(one) <= start]
        found = self._seats(gone if count else ())
        return Kept(found or seats, start)

    def _waiting(self) -> Kept | None:
        """The longest running first, as many as it takes; then without those who may stay."""
        if self._seats([*self._known, *self._unknown]) is None:
            return None
        alone = self._alone()
        if alone is not None:
            return alone
        count = self._fewest(self._unknown, self._known)
        gone = [*self._unknown[:count]]
        for one in self._unknown[:count]:
            if self._meter.spent:
                break
            fewer = [other for other in gone if other is not one]
            if self._seats([*self._known, *fewer]) is not None:
                gone = fewer
        seats = self._seats([*self._known, *gone])
        if seats is None:
            return None
        least = not self._meter.spent
        return Kept(seats, None, tuple(sorted(one.key for one in gone)), least)

    def _alone(self) -> Kept | None:
        """For one pod, where the fewest have to end; None where the steps ended."""
        ask, view = self._ask, without_pods.Absence(self._ask.view, self._known)
        asked = step_budget.of(view, ask.single, ask.deciding) if ask.single else None
        if asked is None or self._meter.spent:
            return None
        search = victim_search.Search(view, asked, cost.Fewest(view), self._meter)
        there = [
            (view.nodes[name], [one for one in self._unknown if one.node == name])
            for name in sorted(
                {one.node for one in self._unknown} - {*asked.workload.avoided_nodes}
            )
            if name in view.nodes
        ]
        best = victim_search.best(search, there)
        if best.freed is None:
            return None
        without = without_pods.Absence(view, best.freed.leaving)
        picks = asked.picks(without, view.nodes[best.freed.node], best.freed.fit)
        placement = allocator_types.Placement(
            best.freed.node, picks, "once those in its way have ended"
        )
        seat = gang_types.Seat(asked.workload, placement)
        return Kept((seat,), None, best.freed.names, best.freed.least and best.all_seen)

    def _fewest(self, found: Sequence[holders.Tenant], gone: Sequence[holders.Tenant]) -> int:
        """How many of those in order have to go, beside some who are gone."""
        low, high = 0, len(found)
        while low < high:
            middle = (low + high) // 2
            if self._seats([*gone, *found[:middle]]) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _seats(self, gone: Sequence[holders.Tenant]) -> tuple[gang_types.Seat, ...] | None:
        """In the view without these. What nodes told before is remembered from view to view."""
        ask = self._ask
        self._meter.count(step_budget.ASK * len(ask.members))
        view = without_pods.Absence(ask.view, gone)
        seated = gang_placement.place(ask.members, view, ask.near, ask.deciding, self._told)
        return (
            preemption_types.in_order(ask, seated)
            if isinstance(seated, gang_types.Seated)
            else None
        )
