"""Which nodes to ask for: the fewest and cheapest that place what waits, gangs whole. Pure.

What waits is gone through in the order of queues. For the first that finds no place, not on nodes
that are on their way either, the nodes are chosen that cost least for each GPU that is used on them
then, by it and by what comes after it; and so on. In the end each node is left out, or taken
cheaper, where all keep their places. So cost is near the least there can be, not always the least.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from driver import ids
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.gangs import tentative
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.provisioning import (
    demand,
    fill_simulation,
    fit_count,
    node_template,
    placeholder,
)
from driver.scheduling.snapshot import snapshot

_MAX_DEMANDS = 64
"""Wishes without a place that are looked at in one plan: the others have their turn in the next."""
_MAX_FOLLOWERS = 32
_MAX_ROUNDS = 3
"""Seated together, wishes take other places than one by one, and one may be left without."""
_MAX_STEPS = 400
"""Fillings and placings after the first choice: past it, it stays as it is."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What can be asked for, and what was. `most` nodes are on their way at once.

    `resting` are shapes that are left alone for a while, by name, with the reason in words.
    """

    templates: tuple[node_template.NodeTemplate, ...]
    in_flight: fill_simulation.Nodes = field(default_factory=dict)
    max_in_flight: int = 16
    paused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes to ask for, and how each wish stands, by key.

    `seats` are places on nodes that are on their way, asked for now, or brought for it; `hopeless`
    says of those that no shape has room for what each lacks, `deferred` why nothing is asked yet,
    `limited` what their queues may not have. `unneeded`: on their way, and nobody would go there.
    """

    requests: tuple[placeholder.NodeRequest, ...] = ()
    placements: Mapping[str, Sequence[gang_types.MemberPlacement]] = field(default_factory=dict)
    impossible: Mapping[str, str] = field(default_factory=dict)
    deferred: Mapping[str, str] = field(default_factory=dict)
    limited: Mapping[str, str] = field(default_factory=dict)
    unneeded: tuple[ids.NodeName, ...] = ()


def make_plan(
    view: snapshot.Snapshot,
    supply: Supply,
    found: Sequence[demand.NodeDemand],
    deciding: settings.Settings,
    limits: demand.Limits | None = None,
) -> Plan:
    """What to ask for, by wishes in the order of their turn."""
    return _Planning(view, supply, found, deciding, limits or demand.Unlimited()).plan()


@dataclass(frozen=True, slots=True)
class _Option:
    """Nodes with which a wish has places: so many thousandths of GPUs are used on them then."""

    templates: tuple[node_template.NodeTemplate, ...]
    gpus: int

    @property
    def rank(self) -> tuple[Fraction, int, tuple[str, ...]]:
        """The cheapest first, then the fewest."""
        cost = sum((Fraction(one.cost) for one in self.templates), Fraction(0))
        names = tuple(one.name for one in self.templates)
        return cost / max(self.gpus, 1), len(self.templates), names


class _Planning:
    def __init__(
        self,
        view: snapshot.Snapshot,
        supply: Supply,
        found: Sequence[demand.NodeDemand],
        deciding: settings.Settings,
        limits: demand.Limits,
    ) -> None:
        self._view = view
        self._supply = supply
        self._demands = found
        self._deciding = deciding
        self._limits = limits
        self._fit_counter = fit_count.FitCounter(view, deciding)
        self._fill_cache = tentative.FillCache()
        self._chosen: dict[ids.NodeName, node_template.NodeTemplate] = {}
        self._impossible: dict[str, str] = {}
        self._deferred: dict[str, str] = {}
        self._limited: dict[str, str] = {}
        self._steps = 0

    def plan(self) -> Plan:
        state = self._simulate({}, self._demands)
        for _ in range(_MAX_ROUNDS):
            missed = state.result.unplaced
            wanted = [
                one for one in self._demands if one.key in missed and not self._is_answered(one)
            ]
            if not wanted:
                break
            self._add_nodes(state, wanted[:_MAX_DEMANDS])
            # As it will be looked at once they are on their way: from the first wish on again.
            state = self._simulate(self._chosen, self._demands)
        self._limited |= state.result.limited
        if self._chosen:
            state = self._reduce_cost(state)
        seats = state.result.placements
        return Plan(
            requests=tuple(self._build_requests(state.result)),
            placements=seats,
            impossible=self._impossible,
            deferred={key: why for key, why in self._deferred.items() if key not in seats},
            limited={key: why for key, why in self._limited.items() if key not in seats},
            unneeded=tuple(
                one for one in self._supply.in_flight if not state.result.node_members(one)
            ),
        )

    def _is_answered(self, wish: demand.NodeDemand) -> bool:
        return any(wish.key in said for said in (self._impossible, self._deferred, self._limited))

    def _add_nodes(
        self, state: fill_simulation.FillSimulation, wanted: Sequence[demand.NodeDemand]
    ) -> None:
        """Choose nodes for one after the other; what is later has no place before it has its turn.

        Else it would sit where an earlier one, which needs more nodes, could have a part of itself.
        """
        for place, wish in enumerate(wanted):
            if not state.place(wish) and wish.key not in state.result.limited:
                state = self._add_for_demand(state, wish, wanted[place + 1 :])

    def _simulate(
        self, more: fill_simulation.Nodes, found: Sequence[demand.NodeDemand]
    ) -> fill_simulation.FillSimulation:
        """From nothing, with more nodes than are on their way."""
        self._limits.reset()
        nodes = {**self._supply.in_flight, **more}
        state = fill_simulation.FillSimulation(
            self._view, nodes, self._deciding, self._limits, self._fill_cache
        )
        state.place_all(found)
        return state

    # One wish more.

    def _add_for_demand(
        self,
        state: fill_simulation.FillSimulation,
        wish: demand.NodeDemand,
        later: Sequence[demand.NodeDemand],
    ) -> fill_simulation.FillSimulation:
        """With the nodes that a wish is best placed on, where there are any."""
        best = min(self._options(state, wish, later), key=lambda one: one.rank, default=None)
        if best is None:
            return state
        nodes = self._name_nodes(best.templates)
        wider = state.with_nodes(nodes)
        if not wider.place(wish):
            self._limited |= wider.result.limited
            return state
        self._chosen |= nodes
        return wider

    def _options(
        self,
        state: fill_simulation.FillSimulation,
        wish: demand.NodeDemand,
        later: Sequence[demand.NodeDemand],
    ) -> Iterator[_Option]:
        """Of each shape as few as do; and, where members differ, of each kind its cheapest."""
        refused: dict[str, str] = {}
        waits: dict[str, str] = {}
        able: list[tuple[node_template.NodeTemplate, fit_count.FitCount]] = []
        for one in self._supply.templates:
            size = self._fit_counter.count(one, wish)
            if size.rejection:
                refused[one.name] = size.rejection
            elif not_now := self._deferral(one, wish):
                waits[one.name] = not_now
            else:
                able.append((one, size))
        found = 0
        for one, size in able:
            count = self._fewest_nodes(state, wish, one, size)
            if count:
                found += 1
                yield self._weigh_option(state, wish, later, (one,) * count)
            elif size.node_count > self._remaining_requests(one):
                waits[one.name] = self._in_flight_limit(one, size)
            else:
                refused[one.name] = f"{size.node_count} such nodes are not near enough each other"
        if (
            not found
            and (mixed := self._mixed_templates(wish))
            and self._would_place(state, wish, mixed)
        ):
            found += 1
            yield self._weigh_option(state, wish, later, mixed)
        if not found and (waits or refused):
            self._record_reasons(wish, waits, refused)

    def _record_reasons(
        self, wish: demand.NodeDemand, waits: Mapping[str, str], refused: Mapping[str, str]
    ) -> None:
        told = waits or refused
        words = "; ".join(f"{name}: {why}" for name, why in told.items())
        (self._deferred if waits else self._impossible)[wish.key] = words

    def _deferral(self, one: node_template.NodeTemplate, wish: demand.NodeDemand) -> str:
        """Why a shape is not to be asked for yet; "" where it is."""
        if one.name in self._supply.paused:
            return self._supply.paused[one.name]
        if one.startup_s < wish.lead_s:
            return f"is asked for {wish.lead_s - one.startup_s:.0f} s from now"
        return "" if self._remaining_requests(one) > 0 else self._in_flight_limit(one, None)

    def _in_flight_limit(
        self, one: node_template.NodeTemplate, size: fit_count.FitCount | None
    ) -> str:
        most = min(self._supply.max_in_flight, one.max_in_flight)
        if size is not None and size.node_count > most:
            return f"{size.node_count} nodes of it would do, and {most} may be on their way at once"
        return f"as many nodes as may be are on their way ({most})"

    def _remaining_requests(self, one: node_template.NodeTemplate) -> int:
        """How many more of a shape may be asked for now."""
        there = [*self._supply.in_flight.values(), *self._chosen.values()]
        same = sum(other.name == one.name for other in there)
        return min(self._supply.max_in_flight - len(there), one.max_in_flight - same)

    def _fewest_nodes(
        self,
        state: fill_simulation.FillSimulation,
        wish: demand.NodeDemand,
        one: node_template.NodeTemplate,
        size: fit_count.FitCount,
    ) -> int:
        """As few of one shape as give a wish places; 0: as many as may be do not."""
        low, high = 1, min(size.node_count, self._remaining_requests(one))
        if not self._would_place(state, wish, (one,) * high):
            return 0
        while low < high:
            middle = (low + high) // 2
            if self._would_place(state, wish, (one,) * middle):
                high = middle
            else:
                low = middle + 1
        return high

    def _would_place(
        self,
        state: fill_simulation.FillSimulation,
        wish: demand.NodeDemand,
        found: Sequence[node_template.NodeTemplate],
    ) -> bool:
        wider = state.with_nodes(self._name_nodes(found))
        return bool(wider.find_places(wish))

    def _mixed_templates(self, wish: demand.NodeDemand) -> tuple[node_template.NodeTemplate, ...]:
        """Of each kind of member the shape that costs least for it, as many as it takes."""
        kinds: dict[object, list[allocator_types.Workload]] = {}
        for work in wish.workloads:
            kinds.setdefault(workload_signature.workload_signature(work), []).append(work)
        found: list[node_template.NodeTemplate] = []
        for members in kinds.values() if len(kinds) > 1 else ():
            part = replace(wish, workloads=tuple(members))
            sized = ((one, self._fit_counter.count(one, part)) for one in self._supply.templates)
            able = [
                (Fraction(one.cost) * size.node_count, size.node_count, one.name, one)
                for one, size in sized
                if not size.rejection and not self._deferral(one, wish)
            ]
            if not able:
                return ()
            _, count, _, cheapest = min(able, key=lambda each: each[:3])
            found += [cheapest] * count
        taken = Counter(one.name for one in found)
        fits = all(taken[one.name] <= self._remaining_requests(one) for one in found)
        left = self._supply.max_in_flight - len(self._supply.in_flight) - len(self._chosen)
        return tuple(found) if fits and len(found) <= left else ()

    def _weigh_option(
        self,
        state: fill_simulation.FillSimulation,
        wish: demand.NodeDemand,
        later: Sequence[demand.NodeDemand],
        found: tuple[node_template.NodeTemplate, ...],
    ) -> _Option:
        """Weighed by all that would be on these nodes, whatever their queues may have."""
        wider = state.with_nodes(self._name_nodes(found), demand.Unlimited())
        wider.place_all((wish, *later[:_MAX_FOLLOWERS]))
        return _Option(found, wider.result.gpus - state.result.gpus)

    def _name_nodes(
        self, found: Sequence[node_template.NodeTemplate]
    ) -> dict[ids.NodeName, node_template.NodeTemplate]:
        begin = len(self._chosen)
        return {ids.NodeName(f"new-{place:05d}"): one for place, one in enumerate(found, begin)}

    # What is chosen, cheaper.

    def _reduce_cost(self, state: fill_simulation.FillSimulation) -> fill_simulation.FillSimulation:
        """Without each node, or with a cheaper one in its place, as long as all keep theirs."""
        seated = [one for one in self._demands if one.key in state.result.placements]
        better: fill_simulation.FillSimulation | None = state
        while better is not None:
            state, better = better, None
            for nodes in self._variants(state):
                self._steps += len(seated)
                if self._steps > _MAX_STEPS:
                    break
                other = self._simulate(nodes, seated)
                if len(other.result.placements) == len(seated):
                    self._chosen, better = nodes, other
                    break
        # The last trial has counted its places: what queues may have is counted anew.
        return self._simulate(self._chosen, seated)

    def _variants(
        self, state: fill_simulation.FillSimulation
    ) -> Iterator[dict[ids.NodeName, node_template.NodeTemplate]]:
        """One node less; one or two of them as a cheaper one. Of alike nodes one stands for all."""
        for names in self._distinct_names():
            rest = {name: one for name, one in self._chosen.items() if name not in names}
            if len(names) == 1:
                yield rest
            cost = sum(self._chosen[name].cost for name in names)
            guests = {key for name in names for key, _ in state.result.node_members(name)}
            for one in self._supply.templates:
                if one.cost < cost and self._may_replace(one, guests):
                    yield {**rest, names[0]: one}

    def _distinct_names(self) -> Iterator[tuple[ids.NodeName, ...]]:
        """Each node and each pair of nodes whose shapes no other before it has."""
        seen: set[tuple[str, ...]] = set()
        singles = ((name,) for name in self._chosen)
        for names in (*singles, *itertools.combinations(self._chosen, 2)):
            kinds = tuple(sorted(self._chosen[name].name for name in names))
            if kinds not in seen:
                seen.add(kinds)
                yield names

    def _may_replace(self, one: node_template.NodeTemplate, guests: Collection[str]) -> bool:
        """Whether a shape may be asked for now in place of another, for these wishes."""
        found = [wish for wish in self._demands if wish.key in guests]
        resting = one.name in self._supply.paused
        same = sum(other.name == one.name for other in self._supply.in_flight.values())
        same += sum(other.name == one.name for other in self._chosen.values())
        return (
            not resting
            and same < one.max_in_flight
            and all(one.startup_s >= w.lead_s for w in found)
        )

    def _build_requests(
        self, filled: fill_simulation.FillResult
    ) -> Iterator[placeholder.NodeRequest]:
        taken = {str(name) for name in self._supply.in_flight}
        for name, one in self._chosen.items():
            guests = filled.node_members(name)
            if not guests:
                continue
            pods = tuple(seat.workload.pod for _, seat in guests)
            place = 0
            keys = tuple(dict.fromkeys(key for key, _ in guests))
            ask = placeholder.NodeRequest(one, keys, place, pods)
            while ask.name in taken:
                place += 1
                ask = replace(ask, number=place)
            taken.add(ask.name)
            yield ask
