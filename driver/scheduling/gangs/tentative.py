"""A gang being seated on trial: who has sat down where, and how many more a node would take. Pure.

Every seat counts for those that come after it, and can be taken back. Of nodes that are alike one
is filled for all.
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
    """How many members of one shape a node takes, and why not one more.

    `standing` is that of the first. `refusal` is None where all of them were taken, and on a node
    that reaches no device of ours.
    """

    count: int
    rejection: allocator_types.NodeRejection | None
    rank_key: node_result.RankKey = _NO_RANK


class FillCache:
    """What nodes told to shapes of members, kept from gang to gang.

    For one view as it changes and what lies on it, and for one way of deciding.
    """

    def __init__(self) -> None:
        self._results: result_cache.ResultCache | None = None
        self._generation = -1

    def get(self, view: snapshot.Snapshot, shape: Hashable) -> node_result.SignatureResults:
        """Of a shape."""
        if self._results is None or view.generation != self._generation:
            self._results = result_cache.ResultCache(view)
            self._generation = view.generation
        return self._results.get(shape)


class TentativeState:
    """Of one gang, members called by their places in it."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        gang: Sequence[allocator_types.Workload],
        deciding: settings.Settings,
        known: FillCache | None = None,
    ) -> None:
        self._cache = FillCache() if known is None else known
        self._view = overlay.DecisionOverlay(view)
        self._gang = gang
        self._settings = deciding
        self._capacities = node_capacity.NodeCapacityCache()
        self._placements: list[tuple[int, gang_types.MemberPlacement]] = []
        self._allocated: dict[ids.Key, claims.Claim] = {}
        self._queries: dict[ids.Key, node_result.NodeQuery] = {}
        self._fills: dict[Hashable, NodeFill] = {}
        self._results: dict[Hashable, node_result.SignatureResults] = {}
        self._uuid_dependent: dict[Hashable, bool] = {}
        self._signatures: dict[int, Hashable] = {}
        self._shared = _shared_claims(gang)
        self._anti_affinity = frozenset(term for one in gang for term in one.pod.pod_affinity.anti)

    @property
    def placements(self) -> tuple[tuple[int, gang_types.MemberPlacement], ...]:
        """Who sits, in the order in which they sat down."""
        return tuple(self._placements)

    @property
    def occupied_nodes(self) -> frozenset[ids.NodeName]:
        """The nodes on which members sit."""
        return frozenset(seat.placement.node for _, seat in self._placements)

    @property
    def has_network_devices(self) -> bool:
        """Whether one that sits has a device that other nodes may reach."""
        picks = (pick for _, seat in self._placements for pick in seat.placement.assignments)
        return any(pick.reach.node is None for pick in picks)

    def has_changed(self, at: int) -> bool:
        """Whether a claim of a member was settled by one that sits."""
        return self.member(at) is not self._gang[at]

    def member(self, at: int) -> allocator_types.Workload:
        """A member as it is now: claims that it has in common with one that sits are settled."""
        found = self._gang[at]
        given = [
            self._allocated[one.key] for one in found.open_claims if one.key in self._allocated
        ]
        if not given:
            return found
        rest = tuple(one for one in found.open_claims if one.key not in self._allocated)
        return replace(found, open_claims=rest, allocated_claims=(*found.allocated_claims, *given))

    def is_sequential(self, member: int) -> bool:
        """Tell whether each seat of its shape changes what all nodes take (topology spread)."""
        return any(constraint.required for constraint in self._gang[member].pod.spread)

    def size(self, at: int) -> tuple[int, int]:
        """How much a member asks: devices, then CPUs."""
        asked_for = [
            one.ways[0] for claim in self._gang[at].open_claims for one in claim.spec.requests
        ]
        count = sum(claims.MAX_RESULTS if one.everything else one.count for one in asked_for)
        return count, self._gang[at].pod.requests.get("cpu", 0)

    def blocker(self) -> allocator_types.Unschedulable | None:
        """What keeps a member from every node, whichever it is."""
        for members in self.groups(range(len(self._gang))):
            found = allocator_requests.parse_requests(
                self._view, self._gang[members[0]].open_claims
            )
            if isinstance(found, allocator_types.Unschedulable):
                return found
        return None

    def groups(self, members: Sequence[int]) -> list[list[int]]:
        """Members that no node can tell apart, together.

        One that has an open claim in common with others stands alone.
        """
        found: dict[Hashable, list[int]] = {}
        for at in members:
            found.setdefault(self._group_key(at), []).append(at)
        return [*found.values()]

    def node_fill(self, members: Sequence[int], name: ids.NodeName) -> NodeFill:
        """How many of members of one shape a node takes."""
        node, first = self._view.nodes[name], self.member(members[0])
        if name in first.avoided_nodes:
            why = allocator_types.NodeRejection(
                reasons.Reason.NODE_BACKED_OFF, first.avoided_nodes[name]
            )
            return NodeFill(0, why)
        question = self._node_query(first)
        if first.open_claims and not node_result.reaches_driver(question, node):
            return NodeFill(0, None)
        refused = filters.node_rejection(self._view, node, first) or self._cross_node_rejection(
            members, node
        )
        if refused is not None:
            return NodeFill(0, refused)
        found = self._device_fill(members, node)
        most = filters.max_pods(self._view, node, first.pod)
        if domain_filters.is_self_limiting(first.pod):
            most = min(most, self._self_limited_count(members[: found.count], node))
        if most >= found.count:
            return found
        return NodeFill(most, self._full_rejection(members, node, most), found.rank_key)

    def try_place(self, at: int, name: ids.NodeName, why: str) -> bool:
        """Whether a member found a place on a node; it sits there then."""
        member, node = self.member(at), self._view.nodes[name]
        if filters.rejection(self._view, node, member) is not None:
            return False
        question = self._node_query(member)
        found = self._node_result(at, question, node)
        if not isinstance(found, node_result.Fit):
            return False
        picks = node_result.assignments(question, node, found)
        placement = allocator_types.Placement(name, picks, why, found.steps)
        made = allocation_result.build_allocations(self._view, member, placement, timestamp="")
        self._view.apply(snapshot.InFlight(member.pod, name, made))
        for one in member.open_claims:
            if one.key in self._shared:
                self._allocated[one.key] = replace(one, allocation=made[one.key])
        self._placements.append((at, gang_types.MemberPlacement(member, placement)))
        return True

    def undo_placements(self, count: int) -> None:
        """The last ones stand up again."""
        self._view.undo(count)
        for _ in range(count):
            _, seat = self._placements.pop()
            for one in seat.workload.open_claims:
                self._allocated.pop(one.key, None)
        if self._shared:
            self._clear_results()

    def _group_key(self, at: int) -> Hashable:
        member = self.member(at)
        if any(one.key in self._shared for one in member.open_claims):
            return at
        if at not in self._signatures:
            told_apart = domain_filters.pod_signature(
                self._view, self._gang[at].pod, self._anti_affinity
            )
            avoided = frozenset(member.avoided_nodes.items())
            self._signatures[at] = (
                workload_signature.workload_signature(self._gang[at]),
                avoided,
                told_apart,
            )
        settled = tuple(one.key for one in member.allocated_claims)
        return self._signatures[at], settled

    def _node_query(self, member: allocator_types.Workload) -> node_result.NodeQuery:
        """What is asked of nodes for a member, in the rooms as they are now."""
        if self._capacities.refresh(self._view):
            self._clear_results()
        key = member.pod.key
        found = self._queries.get(key)
        if found is None or found.workload is not member:
            wants = allocator_requests.parse_requests(self._view, member.open_claims)
            # `blocker` was asked before, so what is open can be asked for.
            known = () if isinstance(wants, allocator_types.Unschedulable) else wants
            verdicts = self._settings.rules.for_workload(self._view, member)
            found = self._queries[key] = node_result.NodeQuery(
                self._view, self._capacities, member, known, self._settings, verdicts
            )
        return found

    def _device_fill(self, members: Sequence[int], node: nodes.Node) -> NodeFill:
        """As far as devices go; as nodes that are alike were filled, where they were."""
        first = self.member(members[0])
        question = self._node_query(first)
        look = (
            None
            if self._depends_on_uuids(members[0], question)
            else node_result.query_signature(question, node)
        )
        if look is None:
            return self._simulate_fill(members, node)
        key = self._group_key(members[0]), look
        known = self._fills.get(key)
        if known is None or (known.rejection is None and known.count < len(members)):
            known = self._fills[key] = self._simulate_fill(members, node)
        if known.count < len(members):
            return known
        return NodeFill(len(members), None, known.rank_key)

    def _node_result(
        self, at: int, question: node_result.NodeQuery, node: nodes.Node
    ) -> node_result.Fit | allocator_types.NodeRejection:
        """Of a node to a member; as one that is alike told to one of its shape, where one did."""
        if self._depends_on_uuids(at, question):
            return node_result.evaluate_devices(question, node)
        key = self._group_key(at)
        if key not in self._results:
            alone = isinstance(key, int)
            self._results[key] = (
                node_result.SignatureResults() if alone else self._cache.get(self._view, key)
            )
        return self._results[key].get(question, node)

    def _depends_on_uuids(self, at: int, question: node_result.NodeQuery) -> bool:
        """Whether a member may tell nodes apart that are alike."""
        key = self._group_key(at)
        if key not in self._uuid_dependent:
            workload = question.workload
            self._uuid_dependent[key] = node_signature.depends_on_uuids(
                self._view, workload.open_claims, question.requests
            )
        return self._uuid_dependent[key]

    def _clear_results(self) -> None:
        """Nothing that was told of a node holds any more."""
        self._fills.clear()
        self._results.clear()

    def _simulate_fill(self, members: Sequence[int], node: nodes.Node) -> NodeFill:
        """A node is filled and emptied again."""
        standing, refusal = _NO_RANK, None
        count = 0
        for at in members:
            member = self.member(at)
            question = self._node_query(member)
            found = self._node_result(at, question, node)
            if not isinstance(found, node_result.Fit):
                refusal = found
                break
            standing = standing if count else found.rank_key
            made = allocator_types.Placement(
                node.name, node_result.assignments(question, node, found), ""
            )
            given = allocation_result.build_allocations(self._view, member, made, timestamp="")
            self._view.apply(snapshot.InFlight(member.pod, node.name, given))
            count += 1
        self._view.undo(count)
        return NodeFill(count, refusal, standing)

    def _cross_node_rejection(
        self, members: Sequence[int], node: nodes.Node
    ) -> allocator_types.NodeRejection | None:
        """Say why pods of other nodes keep them away; the spread of several changes by each."""
        asked_of = domain_filters.prefilter(self._view, self.member(members[0]))
        if asked_of is None:
            return None
        return (asked_of if len(members) == 1 else asked_of.without_spread).rejection(node)

    def _self_limited_count(self, members: Sequence[int], node: nodes.Node) -> int:
        """Count how many of them their own affinity lets be on a node."""
        count = 0
        for number in members:
            member = self.member(number)
            asked_of = domain_filters.prefilter(self._view, member)
            if asked_of is not None and asked_of.without_spread.rejection(node) is not None:
                break
            self._view.apply(snapshot.InFlight(member.pod, node.name, {}))
            count += 1
        self._view.undo(count)
        return count

    def _full_rejection(
        self, members: Sequence[int], node: nodes.Node, count: int
    ) -> allocator_types.NodeRejection | None:
        """Why a node with so many of them has no room for the next."""
        for at in members[:count]:
            self._view.apply(snapshot.InFlight(self._gang[at].pod, node.name, {}))
        refused = filters.rejection(self._view, node, self.member(members[count]))
        self._view.undo(count)
        return refused


def _shared_claims(gang: Sequence[allocator_types.Workload]) -> frozenset[ids.Key]:
    """Open claims that more than one member has."""
    return frozenset(_duplicates(one.key for member in gang for one in member.open_claims))


def _duplicates(keys: Iterator[ids.Key]) -> Iterator[ids.Key]:
    seen: set[ids.Key] = set()
    for key in keys:
        if key in seen:
            yield key
        seen.add(key)
