"""Provisioning plan: the fewest and cheapest nodes that place pending demands, gangs whole. Pure.

Demands are visited in queue order. For the first that does not fit, even on nodes in flight, the
nodes are chosen that cost least per GPU used on them then, by it and by later demands; and so on.
In the end each node is left out, or replaced by a cheaper one, if all placements remain. So the
cost is near the minimum, not always minimal.
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
"""Maximum number of unplaced demands per plan: the others follow in the next."""
_MAX_FOLLOWERS = 32
_MAX_ROUNDS = 3
"""Placed together, demands take other places than one by one, and one may be left over."""
_MAX_STEPS = 400
"""Budget of simulations after the first choice: past it, the choice stays."""


@dataclass(frozen=True, slots=True)
class Supply:
    """Templates, and nodes in flight, at most `max_in_flight`.

    `paused` are templates that are not requested for a while, by name, with the reason in words.
    """

    templates: tuple[node_template.NodeTemplate, ...]
    in_flight: fill_simulation.Nodes = field(default_factory=dict)
    max_in_flight: int = 16
    paused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes to request, and the state of each demand, by key.

    `placements` are on nodes in flight, requested now, or provisioned for it; `impossible` says
    what no template has room for, `deferred` why nothing is requested yet, `limited` what their
    queues may not have. `unneeded`: nodes in flight without any placement.
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
    node_demands: Sequence[demand.NodeDemand],
    allocator_settings: settings.Settings,
    limits: demand.Limits | None = None,
) -> Plan:
    """Return what to request, for demands in queue order."""
    return _Planning(
        view, supply, node_demands, allocator_settings, limits or demand.Unlimited()
    ).plan()


@dataclass(frozen=True, slots=True)
class _Option:
    """Nodes that place a demand, and the thousandths of GPUs used on them then."""

    templates: tuple[node_template.NodeTemplate, ...]
    gpus: int

    @property
    def rank(self) -> tuple[Fraction, int, tuple[str, ...]]:
        """Sort key: the cheapest first, then the fewest."""
        cost = sum((Fraction(template.cost) for template in self.templates), Fraction(0))
        names = tuple(template.name for template in self.templates)
        return cost / max(self.gpus, 1), len(self.templates), names


class _Planning:
    def __init__(
        self,
        view: snapshot.Snapshot,
        supply: Supply,
        node_demands: Sequence[demand.NodeDemand],
        allocator_settings: settings.Settings,
        limits: demand.Limits,
    ) -> None:
        self._view = view
        self._supply = supply
        self._demands = node_demands
        self._deciding = allocator_settings
        self._limits = limits
        self._fit_counter = fit_count.FitCounter(view, allocator_settings)
        self._fill_cache = tentative.FillCache()
        self._chosen: dict[ids.NodeName, node_template.NodeTemplate] = {}
        self._impossible: dict[str, str] = {}
        self._deferred: dict[str, str] = {}
        self._limited: dict[str, str] = {}
        self._steps = 0

    def plan(self) -> Plan:
        state = self._add_all()
        if self._chosen:
            state = self._refine(state)
        placements = state.result.placements
        return Plan(
            requests=tuple(self._build_requests(state.result)),
            placements=placements,
            impossible=self._impossible,
            deferred={key: why for key, why in self._deferred.items() if key not in placements},
            limited={key: why for key, why in self._limited.items() if key not in placements},
            unneeded=tuple(
                entry for entry in self._supply.in_flight if not state.result.node_members(entry)
            ),
        )

    def _add_all(self) -> fill_simulation.FillSimulation:
        """Choose further nodes until each demand is placed or has its answer."""
        state = self._simulate(self._chosen, self._demands)
        for _ in range(_MAX_ROUNDS):
            missed = state.result.unplaced
            unplaced = [
                entry
                for entry in self._demands
                if entry.key in missed and not self._is_answered(entry)
            ]
            if not unplaced:
                break
            self._add_nodes(state, unplaced[:_MAX_DEMANDS])
            # As the next plan will see it: from the first demand on again.
            state = self._simulate(self._chosen, self._demands)
        self._limited |= state.result.limited
        return state

    def _add_deferred(
        self, state: fill_simulation.FillSimulation
    ) -> fill_simulation.FillSimulation | None:
        """Give deferred demands another turn, as fewer nodes are requested than before.

        Another node changes where the others go: None, and all as it was, if nothing is gained or
        a placed demand has no place any more.
        """
        deferred = self._deferred
        answers = self._chosen, self._impossible, deferred, self._limited
        self._chosen, self._deferred = dict(self._chosen), {}
        self._impossible, self._limited = dict(self._impossible), dict(self._limited)
        wider = self._add_all()
        if state.result.placements.keys() < wider.result.placements.keys():
            self._deferred = {**deferred, **self._deferred}
            return wider
        self._chosen, self._impossible, self._deferred, self._limited = answers
        return None

    def _is_answered(self, node_demand: demand.NodeDemand) -> bool:
        return any(
            node_demand.key in reasons
            for reasons in (self._impossible, self._deferred, self._limited)
        )

    def _add_nodes(
        self, state: fill_simulation.FillSimulation, unplaced: Sequence[demand.NodeDemand]
    ) -> None:
        """Choose nodes for one demand after the other; none is placed before its turn.

        Else it could take the place of a part of an earlier one that needs more nodes.
        """
        for index, node_demand in enumerate(unplaced):
            if not state.place(node_demand) and node_demand.key not in state.result.limited:
                state = self._add_for_demand(state, node_demand, unplaced[index + 1 :])

    def _simulate(
        self, more: fill_simulation.Nodes, node_demands: Sequence[demand.NodeDemand]
    ) -> fill_simulation.FillSimulation:
        """Place demands on nodes in flight and further ones."""
        self._limits.reset()
        nodes = {**self._supply.in_flight, **more}
        state = fill_simulation.FillSimulation(
            self._view, nodes, self._deciding, self._limits, self._fill_cache
        )
        state.place_all(node_demands)
        return state

    # One more demand.

    def _add_for_demand(
        self,
        state: fill_simulation.FillSimulation,
        node_demand: demand.NodeDemand,
        later: Sequence[demand.NodeDemand],
    ) -> fill_simulation.FillSimulation:
        """Add the best nodes for a demand, if there are any."""
        best = min(
            self._options(state, node_demand, later), key=lambda option: option.rank, default=None
        )
        if best is None:
            return state
        nodes = self._name_nodes(best.templates)
        wider = state.with_nodes(nodes)
        if not wider.place(node_demand):
            self._limited |= wider.result.limited
            return state
        self._chosen |= nodes
        return wider

    def _options(
        self,
        state: fill_simulation.FillSimulation,
        node_demand: demand.NodeDemand,
        later: Sequence[demand.NodeDemand],
    ) -> Iterator[_Option]:
        """Yield the fewest nodes of each template; if members differ, the cheapest mix."""
        rejected: dict[str, str] = {}
        deferred: dict[str, str] = {}
        candidates: list[tuple[node_template.NodeTemplate, fit_count.FitCount]] = []
        for template in self._supply.templates:
            size = self._fit_counter.count(template, node_demand)
            if size.rejection:
                rejected[template.name] = size.rejection
            elif not_now := self._deferral(template, node_demand):
                deferred[template.name] = not_now
            else:
                candidates.append((template, size))
        feasible = 0
        for template, size in candidates:
            count = self._fewest_nodes(state, node_demand, template, size)
            if count:
                feasible += 1
                yield self._weigh_option(state, node_demand, later, (template,) * count)
            elif size.node_count > self._remaining_requests(template):
                deferred[template.name] = self._in_flight_limit(template, size)
            else:
                rejected[template.name] = (
                    f"{size.node_count} such nodes are not near enough each other"
                )
        if (
            not feasible
            and (mixed := self._mixed_templates(node_demand))
            and self._would_place(state, node_demand, mixed)
        ):
            feasible += 1
            yield self._weigh_option(state, node_demand, later, mixed)
        if not feasible and (deferred or rejected):
            self._record_reasons(node_demand, deferred, rejected)

    def _record_reasons(
        self,
        node_demand: demand.NodeDemand,
        deferred: Mapping[str, str],
        rejected: Mapping[str, str],
    ) -> None:
        reasons = deferred or rejected
        words = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        (self._deferred if deferred else self._impossible)[node_demand.key] = words

    def _deferral(
        self, template: node_template.NodeTemplate, node_demand: demand.NodeDemand
    ) -> str:
        """Return why a template must not be requested yet; "" if it may."""
        if template.name in self._supply.paused:
            return self._supply.paused[template.name]
        if template.startup_s < node_demand.lead_s:
            return f"is asked for {node_demand.lead_s - template.startup_s:.0f} s from now"
        return (
            "" if self._remaining_requests(template) > 0 else self._in_flight_limit(template, None)
        )

    def _in_flight_limit(
        self, template: node_template.NodeTemplate, size: fit_count.FitCount | None
    ) -> str:
        most = min(self._supply.max_in_flight, template.max_in_flight)
        if size is not None and size.node_count > most:
            return f"{size.node_count} nodes of it would do, and {most} may be on their way at once"
        return f"as many nodes as may be are on their way ({most})"

    def _remaining_requests(self, template: node_template.NodeTemplate) -> int:
        """Return how many more nodes of a template may be requested now."""
        in_flight = [*self._supply.in_flight.values(), *self._chosen.values()]
        same = sum(other.name == template.name for other in in_flight)
        return min(self._supply.max_in_flight - len(in_flight), template.max_in_flight - same)

    def _fewest_nodes(
        self,
        state: fill_simulation.FillSimulation,
        node_demand: demand.NodeDemand,
        template: node_template.NodeTemplate,
        size: fit_count.FitCount,
    ) -> int:
        """Return the fewest nodes of a template that place a demand; 0 if the maximum does not."""
        low, high = 1, min(size.node_count, self._remaining_requests(template))
        if not self._would_place(state, node_demand, (template,) * high):
            return 0
        while low < high:
            middle = (low + high) // 2
            if self._would_place(state, node_demand, (template,) * middle):
                high = middle
            else:
                low = middle + 1
        return high

    def _would_place(
        self,
        state: fill_simulation.FillSimulation,
        node_demand: demand.NodeDemand,
        templates: Sequence[node_template.NodeTemplate],
    ) -> bool:
        wider = state.with_nodes(self._name_nodes(templates))
        return bool(wider.find_places(node_demand))

    def _mixed_templates(
        self, node_demand: demand.NodeDemand
    ) -> tuple[node_template.NodeTemplate, ...]:
        """Return the cheapest template of each kind of member, as often as needed."""
        kinds: dict[object, list[allocator_types.Workload]] = {}
        for work in node_demand.workloads:
            kinds.setdefault(workload_signature.workload_signature(work), []).append(work)
        templates: list[node_template.NodeTemplate] = []
        for members in kinds.values() if len(kinds) > 1 else ():
            part = replace(node_demand, workloads=tuple(members))
            fit_counts = (
                (template, self._fit_counter.count(template, part))
                for template in self._supply.templates
            )
            candidates = [
                (
                    Fraction(template.cost) * size.node_count,
                    size.node_count,
                    template.name,
                    template,
                )
                for template, size in fit_counts
                if not size.rejection and not self._deferral(template, node_demand)
            ]
            if not candidates:
                return ()
            _, count, _, cheapest = min(candidates, key=lambda each: each[:3])
            templates += [cheapest] * count
        taken = Counter(template.name for template in templates)
        fits = all(
            taken[template.name] <= self._remaining_requests(template) for template in templates
        )
        remaining = self._supply.max_in_flight - len(self._supply.in_flight) - len(self._chosen)
        return tuple(templates) if fits and len(templates) <= remaining else ()

    def _weigh_option(
        self,
        state: fill_simulation.FillSimulation,
        node_demand: demand.NodeDemand,
        later: Sequence[demand.NodeDemand],
        templates: tuple[node_template.NodeTemplate, ...],
    ) -> _Option:
        """Weigh by all placements on these nodes, whatever their queues may have."""
        wider = state.with_nodes(self._name_nodes(templates), demand.Unlimited())
        wider.place_all((node_demand, *later[:_MAX_FOLLOWERS]))
        return _Option(templates, wider.result.gpus - state.result.gpus)

    def _name_nodes(
        self, templates: Sequence[node_template.NodeTemplate]
    ) -> dict[ids.NodeName, node_template.NodeTemplate]:
        """Name further nodes; a name that cost reduction has set free is used again."""
        names = (ids.NodeName(f"new-{index:05d}") for index in itertools.count())
        free = (name for name in names if name not in self._chosen)
        return dict(zip(free, templates, strict=False))

    # Cost reduction.

    def _refine(self, state: fill_simulation.FillSimulation) -> fill_simulation.FillSimulation:
        """Reduce the cost, and again with deferred demands, as long as there is room for some."""
        wider: fill_simulation.FillSimulation | None = state
        while wider is not None:
            count = len(self._chosen)
            state = self._reduce_cost(wider)
            fewer = len(self._chosen) < count
            wider = self._add_deferred(state) if fewer and self._deferred else None
        # Each trial has reserved headroom of the queues since.
        placed = [entry for entry in self._demands if entry.key in state.result.placements]
        return self._simulate(self._chosen, placed)

    def _reduce_cost(self, state: fill_simulation.FillSimulation) -> fill_simulation.FillSimulation:
        """Remove nodes, or replace them by cheaper ones, as long as all placements remain."""
        placed_demands = [entry for entry in self._demands if entry.key in state.result.placements]
        better: fill_simulation.FillSimulation | None = state
        while better is not None:
            state, better = better, None
            for nodes in self._variants(state):
                self._steps += len(placed_demands)
                if self._steps > _MAX_STEPS:
                    break
                other = self._simulate(nodes, placed_demands)
                if len(other.result.placements) == len(placed_demands):
                    self._chosen, better = nodes, other
                    break
        return state

    def _variants(
        self, state: fill_simulation.FillSimulation
    ) -> Iterator[dict[ids.NodeName, node_template.NodeTemplate]]:
        """Yield one node less; one or two of them as a cheaper one. Equal nodes count once."""
        for names in self._distinct_names():
            rest = {name: template for name, template in self._chosen.items() if name not in names}
            if len(names) == 1:
                yield rest
            cost = sum(self._chosen[name].cost for name in names)
            guests = {key for name in names for key, _ in state.result.node_members(name)}
            for template in self._supply.templates:
                if template.cost < cost and self._may_replace(template, guests):
                    yield {**rest, names[0]: template}

    def _distinct_names(self) -> Iterator[tuple[ids.NodeName, ...]]:
        """Yield each node and each pair of nodes with templates not yielded before."""
        seen: set[tuple[str, ...]] = set()
        singles = ((name,) for name in self._chosen)
        for names in (*singles, *itertools.combinations(self._chosen, 2)):
            kinds = tuple(sorted(self._chosen[name].name for name in names))
            if kinds not in seen:
                seen.add(kinds)
                yield names

    def _may_replace(self, template: node_template.NodeTemplate, guests: Collection[str]) -> bool:
        """Return whether a template may be requested instead of another, for these demands."""
        guests_demands = [entry for entry in self._demands if entry.key in guests]
        resting = template.name in self._supply.paused
        same = sum(other.name == template.name for other in self._supply.in_flight.values())
        same += sum(other.name == template.name for other in self._chosen.values())
        return (
            not resting
            and same < template.max_in_flight
            and all(template.startup_s >= w.lead_s for w in guests_demands)
        )

    def _build_requests(
        self, filled: fill_simulation.FillResult
    ) -> Iterator[placeholder.NodeRequest]:
        taken = {str(name) for name in self._supply.in_flight}
        for name, template in self._chosen.items():
            guests = filled.node_members(name)
            if not guests:
                continue
            pods = tuple(member.workload.pod for _, member in guests)
            number = 0
            keys = tuple(dict.fromkeys(key for key, _ in guests))
            request = placeholder.NodeRequest(template, keys, number, pods)
            while request.name in taken:
                number += 1
                request = replace(request, number=number)
            taken.add(request.name)
            yield request
