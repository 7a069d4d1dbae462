"""Tentative gang placement: members placed so far, and how many more a node takes. Pure.

Every placement counts for later ones, and can be undone. Of equivalent nodes one is filled for all.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from driver import ids, reasons
from driver.resources.core import nodes
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, settings
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import node_signature, workload_signature
from driver.scheduling.allocator.node_filter import domain_filters, filters
from driver.scheduling.allocator.results import node_result, result_cache
from driver.scheduling.gangs import overlay
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.snapshot import snapshot

_NO_RANK: node_result.RankKey = (0, 0, (), 0)


@dataclass(frozen=True, slots=True)
class NodeFill:
    """Number of members of one shape that a node takes, and why not one more.

    `rank_key` is that of the first. `rejection` is None if all of them fit, and on a node that
    reaches no device of ours.
    """

    count: int
    rejection: allocator_types.NodeRejection | None
    rank_key: node_result.RankKey = _NO_RANK


class FillCache:
    """Node results by member signature, retained from gang to gang.

    For one snapshot as it changes, its overlays, and one set of allocator settings.
    """

    def __init__(self) -> None:
        self._results: result_cache.ResultCache | None = None
        self._generation = -1

    def get(self, view: snapshot.Snapshot, shape: Hashable) -> result_cache.SignatureResults:
        """Return the results of a signature."""
        if self._results is None or view.generation != self._generation:
            self._results = result_cache.ResultCache(view)
            self._generation = view.generation
        return self._results.get(shape)


class TentativeState:
    """State for one gang; members are identified by their indexes."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        gang: Sequence[allocator_types.Workload],
        allocator_settings: settings.Settings,
        cache: FillCache | None = None,
    ) -> None:
        self._cache = FillCache() if cache is None else cache
        self._view = overlay.DecisionOverlay(view)
        self._gang = gang
        self._settings = allocator_settings
        self._capacities = node_capacity.NodeCapacityCache()
        self._placements: list[tuple[int, gang_types.MemberPlacement]] = []
        self._allocated: dict[ids.Key, claims.Claim] = {}
        self._queries: dict[ids.Key, node_result.NodeQuery] = {}
        self._fills: dict[Hashable, NodeFill] = {}
        self._results: dict[Hashable, result_cache.SignatureResults] = {}
        self._uuid_dependent: dict[Hashable, bool] = {}
        self._signatures: dict[int, Hashable] = {}
        self._shared = _shared_claims(gang)
        self._anti_affinity = frozenset(
            term for member in gang for term in member.pod.pod_affinity.anti
        )

    @property
    def placements(self) -> tuple[tuple[int, gang_types.MemberPlacement], ...]:
        """Placed members, in the order of placement."""
        return tuple(self._placements)

    @property
    def occupied_nodes(self) -> frozenset[ids.NodeName]:
        """Nodes with placed members."""
        return frozenset(member.placement.node for _, member in self._placements)

    @property
    def has_network_devices(self) -> bool:
        """True if a placed member has, or kube-scheduler gives it, a device of several nodes."""
        return any(
            assignment.reach.node is None
            for _, member in self._placements
            for assignment in member.placement.all_assignments
        )

    def has_changed(self, index: int) -> bool:
        """Return whether a claim of a member was allocated to a placed one."""
        return self.member(index) is not self._gang[index]

    def member(self, index: int) -> allocator_types.Workload:
        """Return a member as it is now: claims shared with placed members are allocated."""
        workload = self._gang[index]
        allocated = [
            self._allocated[claim.key]
            for claim in workload.unallocated_claims
            if claim.key in self._allocated
        ]
        if not allocated:
            return workload
        return replace(
            workload,
            open_claims=self._without_allocated(workload.open_claims),
            allocated_claims=(*workload.allocated_claims, *allocated),
            scheduler_claims=self._without_allocated(workload.scheduler_claims),
        )

    def _without_allocated(self, member_claims: Sequence[claims.Claim]) -> tuple[claims.Claim, ...]:
        return tuple(claim for claim in member_claims if claim.key not in self._allocated)

    def is_sequential(self, member: int) -> bool:
        """Return whether each placement of its shape changes all nodes' fills (topology spread)."""
        return any(constraint.required for constraint in self._gang[member].pod.spread_constraints)

    def size(self, index: int) -> tuple[int, int]:
        """Return the size of a member: devices, then CPUs."""
        requests = [
            request.alternatives_or_self[0]
            for claim in self._gang[index].open_claims
            for request in claim.spec.requests
        ]
        count = sum(
            claims.MAX_RESULTS if request.all_devices else request.count for request in requests
        )
        return count, self._gang[index].pod.requests.get("cpu", 0)

    def blocker(self) -> allocator_types.Unschedulable | None:
        """Return what makes a member unschedulable on every node; None if nothing does."""
        for members in self.groups(range(len(self._gang))):
            requests = allocator_requests.parse_workload(self._view, self._gang[members[0]])
            if isinstance(requests, allocator_types.Unschedulable):
                return requests
        return None

    def groups(self, members: Sequence[int]) -> list[list[int]]:
        """Return groups of members that no node distinguishes.

        A member that shares an unallocated claim with others is a group of its own.
        """
        by_key: dict[Hashable, list[int]] = {}
        for member in members:
            by_key.setdefault(self._group_key(member), []).append(member)
        return [*by_key.values()]

    def node_fill(self, members: Sequence[int], name: ids.NodeName) -> NodeFill:
        """Return how many members of one shape a node takes."""
        node, first = self._view.nodes[name], self.member(members[0])
        if name in first.avoided_nodes:
            rejection = allocator_types.NodeRejection(
                reasons.Reason.NODE_BACKED_OFF, first.avoided_nodes[name]
            )
            return NodeFill(0, rejection)
        query = self._node_query(first)
        if first.open_claims and not node_result.reaches_driver(query, node):
            return NodeFill(0, None)
        refused = filters.node_rejection(self._view, node, first) or self._cross_node_rejection(
            members, node
        )
        if refused is not None:
            return NodeFill(0, refused)
        fill = self._device_fill(members, node)
        limit = filters.max_pods(self._view, node, first.pod)
        if domain_filters.is_self_limiting(first.pod):
            limit = min(limit, self._self_limited_count(members[: fill.count], node))
        if limit >= fill.count:
            return fill
        return NodeFill(limit, self._full_rejection(members, node, limit), fill.rank_key)

    def try_place(self, index: int, name: ids.NodeName, explanation: str) -> bool:
        """Place a member on a node; return False if it does not fit."""
        member, node = self.member(index), self._view.nodes[name]
        if filters.rejection(self._view, node, member) is not None:
            return False
        query = self._node_query(member)
        fit = self._node_result(index, query, node)
        if not isinstance(fit, node_result.Fit):
            return False
        placement = node_result.placement(query, node, fit, explanation)
        decision = allocation_result.build_decision(self._view, member, placement)
        self._view.apply(decision)
        for claim in member.unallocated_claims:
            if claim.key in self._shared:
                allocation = decision.all_allocations[claim.key]
                self._allocated[claim.key] = replace(claim, allocation=allocation)
        self._placements.append((index, gang_types.MemberPlacement(member, placement)))
        return True

    def undo_placements(self, count: int) -> None:
        """Undo the last placements."""
        self._view.undo(count)
        for _ in range(count):
            _, member = self._placements.pop()
            for claim in member.workload.unallocated_claims:
                self._allocated.pop(claim.key, None)
        if self._shared:
            self._clear_results()

    def _group_key(self, index: int) -> Hashable:
        member = self.member(index)
        if any(claim.key in self._shared for claim in member.unallocated_claims):
            return index
        if index not in self._signatures:
            distinction = domain_filters.pod_signature(
                self._view, self._gang[index].pod, self._anti_affinity
            )
            avoided = frozenset(member.avoided_nodes.items())
            self._signatures[index] = (
                workload_signature.workload_signature(self._gang[index]),
                avoided,
                distinction,
            )
        settled = tuple(claim.key for claim in member.allocated_claims)
        return self._signatures[index], settled

    def _node_query(self, member: allocator_types.Workload) -> node_result.NodeQuery:
        """Return the query for a member, with current capacities."""
        if self._capacities.refresh(self._view):
            self._clear_results()
        key = member.pod.key
        query = self._queries.get(key)
        if query is None or query.workload is not member:
            requests = allocator_requests.parse_workload(self._view, member)
            # `blocker` was checked before, so the open claims can be parsed.
            parsed = () if isinstance(requests, allocator_types.Unschedulable) else requests
            workload_filters = self._settings.rules.for_workload(self._view, member)
            query = self._queries[key] = node_result.NodeQuery(
                self._view, self._capacities, member, parsed, self._settings, workload_filters
            )
        return query

    def _device_fill(self, members: Sequence[int], node: nodes.Node) -> NodeFill:
        """Return the fill by devices alone; that of an equivalent node if cached."""
        first = self.member(members[0])
        query = self._node_query(first)
        signature = (
            None
            if self._depends_on_uuids(members[0], query)
            else node_result.query_signature(query, node)
        )
        if signature is None:
            return self._simulate_fill(members, node)
        key = self._group_key(members[0]), signature
        fill = self._fills.get(key)
        if fill is None or (fill.rejection is None and fill.count < len(members)):
            fill = self._fills[key] = self._simulate_fill(members, node)
        if fill.count < len(members):
            return fill
        return NodeFill(len(members), None, fill.rank_key)

    def _node_result(
        self, index: int, query: node_result.NodeQuery, node: nodes.Node
    ) -> node_result.Fit | allocator_types.NodeRejection:
        """Return the result of a node for a member; cached by signature."""
        if self._depends_on_uuids(index, query):
            return node_result.device_result(query, node)
        key = self._group_key(index)
        if key not in self._results:
            alone = isinstance(key, int)
            self._results[key] = (
                result_cache.SignatureResults() if alone else self._cache.get(self._view, key)
            )
        return self._results[key].get(query, node)

    def _depends_on_uuids(self, index: int, query: node_result.NodeQuery) -> bool:
        """Return whether a member may distinguish equivalent nodes."""
        key = self._group_key(index)
        if key not in self._uuid_dependent:
            workload = query.workload
            self._uuid_dependent[key] = node_signature.depends_on_uuids(
                self._view, workload.unallocated_claims, query.requests
            )
        return self._uuid_dependent[key]

    def _clear_results(self) -> None:
        """Drop all cached results of nodes."""
        self._fills.clear()
        self._results.clear()

    def _simulate_fill(self, members: Sequence[int], node: nodes.Node) -> NodeFill:
        """Fill a node, and empty it again."""
        standing, rejection = _NO_RANK, None
        count = 0
        for index in members:
            member = self.member(index)
            query = self._node_query(member)
            result = self._node_result(index, query, node)
            if not isinstance(result, node_result.Fit):
                rejection = result
                break
            standing = standing if count else result.rank_key
            placement = node_result.placement(query, node, result)
            self._view.apply(allocation_result.build_decision(self._view, member, placement))
            count += 1
        self._view.undo(count)
        return NodeFill(count, rejection, standing)

    def _cross_node_rejection(
        self, members: Sequence[int], node: nodes.Node
    ) -> allocator_types.NodeRejection | None:
        """Return why pods of other nodes exclude them; spread is left out for several."""
        state = domain_filters.prefilter(self._view, self.member(members[0]))
        if state is None:
            return None
        return (state if len(members) == 1 else state.without_spread).rejection(node)

    def _self_limited_count(self, members: Sequence[int], node: nodes.Node) -> int:
        """Return how many of them their own affinity admits on a node."""
        count = 0
        for number in members:
            member = self.member(number)
            state = domain_filters.prefilter(self._view, member)
            if state is not None and state.without_spread.rejection(node) is not None:
                break
            self._view.apply(snapshot.InFlight(member.pod, node.name, {}))
            count += 1
        self._view.undo(count)
        return count

    def _full_rejection(
        self, members: Sequence[int], node: nodes.Node, count: int
    ) -> allocator_types.NodeRejection | None:
        """Return why a node with that many of them has no room for the next."""
        for member in members[:count]:
            self._view.apply(snapshot.InFlight(self._gang[member].pod, node.name, {}))
        rejection = filters.rejection(self._view, node, self.member(members[count]))
        self._view.undo(count)
        return rejection


def _shared_claims(gang: Sequence[allocator_types.Workload]) -> frozenset[ids.Key]:
    """Return unallocated claims of more than one member."""
    keys = (claim.key for member in gang for claim in member.unallocated_claims)
    return frozenset(_duplicates(keys))


def _duplicates(keys: Iterator[ids.Key]) -> Iterator[ids.Key]:
    seen: set[ids.Key] = set()
    for key in keys:
        if key in seen:
            yield key
        seen.add(key)
