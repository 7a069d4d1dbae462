"""Simulates placement on hypothetical nodes, in queue order. Pure."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.allocator import allocation_result, dra_allocator, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.gangs import overlay, tentative
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.provisioning import demand, hypothetical_nodes, node_template
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import overlay as snapshot_overlay
from driver.scheduling.snapshot import snapshot

Nodes = Mapping[ids.NodeName, node_template.NodeTemplate]
"""Hypothetical nodes, by provisional names."""


@dataclass(slots=True)
class FillResult:
    """Placements by demand, and demands without one. `gpus` are thousandths of all placements."""

    placements: dict[str, Sequence[gang_types.MemberPlacement]] = field(default_factory=dict)
    unplaced: set[str] = field(default_factory=set)
    limited: dict[str, str] = field(default_factory=dict)
    gpus: int = 0

    def node_members(self, node: ids.NodeName) -> list[tuple[str, gang_types.MemberPlacement]]:
        """Return the members on a node, with their demands, in order."""
        return [
            (key, member)
            for key, members in self.placements.items()
            for member in members
            if member.placement.node == node
        ]


class _NewNodesView(snapshot_overlay.SnapshotOverlay):
    """Snapshot of the hypothetical nodes alone."""

    def __init__(self, base: snapshot.Snapshot, names: frozenset[ids.NodeName]) -> None:
        super().__init__(base)
        self._names = names

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Hypothetical nodes by name."""
        return {name: self._base.nodes[name] for name in self._names}

    @property
    def revision(self) -> int:
        """Current revision; see `changed_since`."""
        return self._base.revision

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """Return the current revision and the nodes changed since `mark`; None: any may have."""
        return self._base.changed_since(mark)


class FillSimulation:
    """Places demands one after the other; each placement counts for later ones.

    A single pod is placed on hypothetical nodes, or on nodes provisioned for it, alone: it did not
    fit the others. Part of a gang may go there.
    """

    def __init__(
        self,
        base: snapshot.Snapshot,
        templates: Nodes,
        allocator_settings: settings.Settings,
        limits: demand.Limits,
        fill_cache: tentative.FillCache | None = None,
    ) -> None:
        self._deciding = allocator_settings
        self._limits = limits
        self._fill_cache = fill_cache or tentative.FillCache()
        self._view = overlay.DecisionOverlay(hypothetical_nodes.HypotheticalNodes(base, templates))
        self._names = frozenset(templates)
        self._new_nodes = _NewNodesView(self._view, self._names)
        self._allocator = dra_allocator.Allocator(allocator_settings)
        self._unplaceable: set[Hashable] = set()
        self.result = FillResult()

    def with_nodes(self, templates: Nodes, limits: demand.Limits | None = None) -> "FillSimulation":
        """Return the simulation with more nodes; existing placements stay.

        A demand without a placement did not fit the existing nodes: only the new ones are tried.
        """
        other = FillSimulation(
            self._view, templates, self._deciding, limits or self._limits, self._fill_cache
        )
        other.result = replace(
            self.result,
            placements=dict(self.result.placements),
            unplaced=set(self.result.unplaced),
            limited=dict(self.result.limited),
        )
        return other

    def find_places(self, node_demand: demand.NodeDemand) -> Sequence[gang_types.MemberPlacement]:
        """Return placements of a demand, not applied; none if not all of it fits."""
        if len(node_demand.workloads) == 1 and not node_demand.provisioned_nodes:
            (work,) = node_demand.workloads
            placed = self._allocator.decide(self._new_nodes, work) if self._names else None
            return (
                (gang_types.MemberPlacement(work, placed),)
                if isinstance(placed, allocator_types.Placement)
                else ()
            )
        view = self._demand_view(node_demand)
        answer = gang_placement.place_gang(
            node_demand.workloads,
            view,
            node_demand.topology_request,
            self._deciding,
            self._fill_cache,
        )
        return answer.members if isinstance(answer, gang_types.GangPlacement) else ()

    def place(self, node_demand: demand.NodeDemand) -> bool:
        """Place a demand; return whether it fits."""
        signature = (
            workload_signature.workload_signature(node_demand.workloads[0])
            if len(node_demand.workloads) == 1
            else None
        )
        members = (
            self.find_places(node_demand)
            if signature is None or signature not in self._unplaceable
            else ()
        )
        if not members:
            self.result.unplaced.add(node_demand.key)
            if signature is not None and not node_demand.provisioned_nodes:
                self._unplaceable.add(signature)
            return False
        taken = queue_resources.sum_amounts(
            queue_resources.results_amounts(
                self._view, (pick.result for pick in member.placement.assignments)
            )
            for member in members
        )
        rejection = self._limits.reserve(node_demand.queue, taken)
        if rejection:
            self.result.limited[node_demand.key] = rejection
            return False
        for member in members:
            self._view.apply(
                allocation_result.build_decision(self._view, member.workload, member.placement)
            )
        self.result.placements[node_demand.key] = members
        self.result.gpus += taken.gpus
        return True

    def place_all(self, node_demands: Iterable[demand.NodeDemand]) -> FillResult:
        """Place as many demands as fit, in order."""
        for node_demand in node_demands:
            self.place(node_demand)
        return self.result

    def _demand_view(self, node_demand: demand.NodeDemand) -> snapshot.Snapshot:
        own_keys = [demand.provisioned_key(node_demand.key)] if node_demand.has_kept_devices else ()
        if len(node_demand.workloads) > 1:
            return (
                reservation_overlay.WithoutReservations(self._view, own_keys)
                if own_keys
                else self._view
            )
        return reservation_overlay.WithoutReservations(
            self._view, own_keys, self._names | node_demand.provisioned_nodes
        )
