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

_MOST_LOOKED_AT = 64
"""Wishes without a place that are looked at in one plan: the others have their turn in the next."""
_FOLLOWERS = 32
_ROUNDS = 3
"""Seated together, wishes take other places than one by one, and one may be left without."""
_STEPS = 400
"""Fillings and placings after the first choice: past it, it stays as it is."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What can be asked for, and what was. `most` nodes are on their way at once.

    `resting` are shapes that are left alone for a while, by name, with the reason in words.
    """

    shapes: tuple[node_template.Shape, ...]
    in_flight: fill_simulation.Nodes = field(default_factory=dict)
    most: int = 16
    resting: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes to ask for, and how each wish stands, by key.

    `seats` are places on nodes that are on their way, asked for now, or brought for it; `hopeless`
    says of those that no shape has room for what each lacks, `deferred` why nothing is asked yet,
    `limited` what their queues may not have. `unneeded`: on their way, and nobody would go there.
    """

    asks: tuple[placeholder.Ask, ...] = ()
    seats: Mapping[str, Sequence[gang_types.Seat]] = field(default_factory=dict)
    hopeless: Mapping[str, str] = field(default_factory=dict)
    deferred: Mapping[str, str] = field(default_factory=dict)
    limited: Mapping[str, str] = field(default_factory=dict)
    unneeded: tuple[ids.NodeName, ...] = ()


def plan(
    view: snapshot.Snapshot,
    supply: Supply,
    found: Sequence[demand.Wish],
    deciding: settings.Settings,
    limits: demand.Limits | None = None,
) -> Plan:
    """What to ask for, by wishes in the order of their turn."""
    return _Planning(view, supply, found, deciding, limits or demand.Unlimited()).plan()


@dataclass(frozen=True, slots=True)
class _Option:
    """Nodes with which a wish has places: so many thousandths of GPUs are used on them then."""

    shapes: tuple[node_template.Shape, ...]
    gpus: int

    @property
    def rank(self) -> tuple[Fraction, int, tuple[str, ...]]:
        """The cheapest first, then the fewest."""
        cost = sum((Fraction(one.cost) for one in self.shapes), Fraction(0))
        names = tuple(one.name for one in self.shapes)
        return cost / max(self.gpus, 1), len(self.shapes), names


class _Planning:
    def __init__(
        self,
        view: snapshot.Snapshot,
        supply: Supply,
        found: Sequence[demand.Wish],
        deciding: settings.Settings,
        limits: demand.Limits,
    ) -> None:
        self._view = view
        self._supply = supply
        self._wishes = found
        self._deciding = deciding
        self._limits = limits
        self._sizes = fit_count.Sizes(view, deciding)
        self._told = tentative.Known()
        self._chosen: dict[ids.NodeName, node_template.Shape] = {}
        self._hopeless: dict[str, str] = {}
        self._deferred: dict[str, str] = {}
        self._limited: dict[str, str] = {}
        self._steps = 0

    def plan(self) -> Plan:
        state = self._filled({}, self._wishes)
        for _ in range(_ROUNDS):
            missed = state.filled.missed
            wanted = [one for one in self._wishes if one.key in missed and not self._said(one)]
            if not wanted:
                break
            self._grow(state, wanted[:_MOST_LOOKED_AT])
            # As it will be looked at once they are on their way: from the first wish on again.
            state = self._filled(self._chosen, self._wishes)
        self._limited |= state.filled.limited
        if self._chosen:
            state = self._cheaper(state)
        seats = state.filled.seats
        return Plan(
            asks=tuple(self._asks(state.filled)),
            seats=seats,
            hopeless=self._hopeless,
            deferred={key: why for key, why in self._deferred.items() if key not in seats},
            limited={key: why for key, why in self._limited.items() if key not in seats},
            unneeded=tuple(one for one in self._supply.in_flight if not state.filled.on(one)),
        )

    def _said(self, wish: demand.Wish) -> bool:
        return any(wish.key in said for said in (self._hopeless, self._deferred, self._limited))

    def _grow(self, state: fill_simulation.Filling, wanted: Sequence[demand.Wish]) -> None:
        """Choose nodes for one after the other; what is later has no place before it has its turn.

        Else it would sit where an earlier one, which needs more nodes, could have a part of itself.
        """
        for place, wish in enumerate(wanted):
            if not state.take(wish) and wish.key not in state.filled.limited:
                state = self._more(state, wish, wanted[place + 1 :])

    def _filled(
        self, more: fill_simulation.Nodes, found: Sequence[demand.Wish]
    ) -> fill_simulation.Filling:
        """From nothing, with more nodes than are on their way."""
        self._limits.reset()
        nodes = {**self._supply.in_flight, **more}
        state = fill_simulation.Filling(self._view, nodes, self._deciding, self._limits, self._told)
        state.take_all(found)
        return state

    # One wish more.

    def _more(
        self, state: fill_simulation.Filling, wish: demand.Wish, later: Sequence[demand.Wish]
    ) -> fill_simulation.Filling:
        """With the nodes that a wish is best placed on, where there are any."""
        best = min(self._options(state, wish, later), key=lambda one: one.rank, default=None)
        if best is None:
            return state
        nodes = self._named(best.shapes)
        wider = state.with_more(nodes)
        if not wider.take(wish):
            self._limited |= wider.filled.limited
            return state
        self._chosen |= nodes
        return wider

    def _options(
        self, state: fill_simulation.Filling, wish: demand.Wish, later: Sequence[demand.Wish]
    ) -> Iterator[_Option]:
        """Of each shape as few as do; and, where members differ, of each kind its cheapest."""
        refused: dict[str, str] = {}
        waits: dict[str, str] = {}
        able: list[tuple[node_template.Shape, fit_count.Size]] = []
        for one in self._supply.shapes:
            size = self._sizes.of(one, wish)
            if size.refusal:
                refused[one.name] = size.refusal
            elif not_now := self._not_now(one, wish):
                waits[one.name] = not_now
            else:
                able.append((one, size))
        found = 0
        for one, size in able:
            count = self._fewest(state, wish, one, size)
            if count:
                found += 1
                yield self._option(state, wish, later, (one,) * count)
            elif size.nodes > self._room(one):
                waits[one.name] = self._full(one, size)
            else:
                refused[one.name] = f"{size.nodes} such nodes are not near enough each other"
        if not found and (mixed := self._mixed(wish)) and self._does(state, wish, mixed):
            found += 1
            yield self._option(state, wish, later, mixed)
        if not found and (waits or refused):
            self._tell(wish, waits, refused)

    def _tell(
        self, wish: demand.Wish, waits: Mapping[str, str], refused: Mapping[str, str]
    ) -> None:
        told = waits or refused
        words = "; ".join(f"{name}: {why}" for name, why in told.items())
        (self._deferred if waits else self._hopeless)[wish.key] = words

    def _not_now(self, one: node_template.Shape, wish: demand.Wish) -> str:
        """Why a shape is not to be asked for yet; "" where it is."""
        if one.name in self._supply.resting:
            return self._supply.resting[one.name]
        if one.starts_s < wish.lead_s:
            return f"is asked for {wish.lead_s - one.starts_s:.0f} s from now"
        return "" if self._room(one) > 0 else self._full(one, None)

    def _full(self, one: node_template.Shape, size: fit_count.Size | None) -> str:
        most = min(self._supply.most, one.most)
        if size is not None and size.nodes > most:
            return f"{size.nodes} nodes of it would do, and {most} may be on their way at once"
        return f"as many nodes as may be are on their way ({most})"

    def _room(self, one: node_template.Shape) -> int:
        """How many more of a shape may be asked for now."""
        there = [*self._supply.in_flight.values(), *self._chosen.values()]
        same = sum(other.name == one.name for other in there)
        return min(self._supply.most - len(there), one.most - same)

    def _fewest(
        self,
        state: fill_simulation.Filling,
        wish: demand.Wish,
        one: node_template.Shape,
        size: fit_count.Size,
    ) -> int:
        """As few of one shape as give a wish places; 0: as many as may be do not."""
        low, high = 1, min(size.nodes, self._room(one))
        if not self._does(state, wish, (one,) * high):
            return 0
        while low < high:
            middle = (low + high) // 2
            if self._does(state, wish, (one,) * middle):
                high = middle
            else:
                low = middle + 1
        return high

    def _does(
        self,
        state: fill_simulation.Filling,
        wish: demand.Wish,
        found: Sequence[node_template.Shape],
    ) -> bool:
        wider = state.with_more(self._named(found))
        return bool(wider.seated(wish))

    def _mixed(self, wish: demand.Wish) -> tuple[node_template.Shape, ...]:
        """Of each kind of member the shape that costs least for it, as many as it takes."""
        kinds: dict[object, list[allocator_types.Workload]] = {}
        for work in wish.workloads:
            kinds.setdefault(workload_signature.workload_signature(work), []).append(work)
        found: list[node_template.Shape] = []
        for members in kinds.values() if len(kinds) > 1 else ():
            part = replace(wish, workloads=tuple(members))
            sized = ((one, self._sizes.of(one, part)) for one in self._supply.shapes)
            able = [
                (Fraction(one.cost) * size.nodes, size.nodes, one.name, one)
                for one, size in sized
                if not size.refusal and not self._not_now(one, wish)
            ]
            if not able:
                return ()
            _, count, _, cheapest = min(able, key=lambda each: each[:3])
            found += [cheapest] * count
        taken = Counter(one.name for one in found)
        fits = all(taken[one.name] <= self._room(one) for one in found)
        left = self._supply.most - len(self._supply.in_flight) - len(self._chosen)
        return tuple(found) if fits and len(found) <= left else ()

    def _option(
        self,
        state: fill_simulation.Filling,
        wish: demand.Wish,
        later: Sequence[demand.Wish],
        found: tuple[node_template.Shape, ...],
    ) -> _Option:
        """Weighed by all that would be on these nodes, whatever their queues may have."""
        wider = state.with_more(self._named(found), demand.Unlimited())
        wider.take_all((wish, *later[:_FOLLOWERS]))
        return _Option(found, wider.filled.gpus - state.filled.gpus)

    def _named(
        self, found: Sequence[node_template.Shape]
    ) -> dict[ids.NodeName, node_template.Shape]:
        begin = len(self._chosen)
        return {ids.NodeName(f"new-{place:05d}"): one for place, one in enumerate(found, begin)}

    # What is chosen, cheaper.

    def _cheaper(self, state: fill_simulation.Filling) -> fill_simulation.Filling:
        """Without each node, or with a cheaper one in its place, as long as all keep theirs."""
        seated = [one for one in self._wishes if one.key in state.filled.seats]
        better: fill_simulation.Filling | None = state
        while better is not None:
            state, better = better, None
            for nodes in self._variants(state):
                self._steps += len(seated)
                if self._steps > _STEPS:
                    break
                other = self._filled(nodes, seated)
                if len(other.filled.seats) == len(seated):
                    self._chosen, better = nodes, other
                    break
        # The last trial has counted its places: what queues may have is counted anew.
        return self._filled(self._chosen, seated)

    def _variants(
        self, state: fill_simulation.Filling
    ) -> Iterator[dict[ids.NodeName, node_template.Shape]]:
        """One node less; one or two of them as a cheaper one. Of alike nodes one stands for all."""
        for names in self._told_apart():
            rest = {name: one for name, one in self._chosen.items() if name not in names}
            if len(names) == 1:
                yield rest
            cost = sum(self._chosen[name].cost for name in names)
            guests = {key for name in names for key, _ in state.filled.on(name)}
            for one in self._supply.shapes:
                if one.cost < cost and self._may_be_for(one, guests):
                    yield {**rest, names[0]: one}

    def _told_apart(self) -> Iterator[tuple[ids.NodeName, ...]]:
        """Each node and each pair of nodes whose shapes no other before it has."""
        seen: set[tuple[str, ...]] = set()
        singles = ((name,) for name in self._chosen)
        for names in (*singles, *itertools.combinations(self._chosen, 2)):
            kinds = tuple(sorted(self._chosen[name].name for name in names))
            if kinds not in seen:
                seen.add(kinds)
                yield names

    def _may_be_for(self, one: node_template.Shape, guests: Collection[str]) -> bool:
        """Whether a shape may be asked for now in place of another, for these wishes."""
        found = [wish for wish in self._wishes if wish.key in guests]
        resting = one.name in self._supply.resting
        same = sum(other.name == one.name for other in self._supply.in_flight.values())
        same += sum(other.name == one.name for other in self._chosen.values())
        return not resting and same < one.most and all(one.starts_s >= w.lead_s for w in found)

    def _asks(self, filled: fill_simulation.Filled) -> Iterator[placeholder.Ask]:
        taken = {str(name) for name in self._supply.in_flight}
        for name, one in self._chosen.items():
            guests = filled.on(name)
            if not guests:
                continue
            pods = tuple(seat.workload.pod for _, seat in guests)
            place = 0
            keys = tuple(dict.fromkeys(key for key, _ in guests))
            ask = placeholder.Ask(one, keys, place, pods)
            while ask.name in taken:
                place += 1
                ask = replace(ask, place=place)
            taken.add(ask.name)
            yield ask
