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

_UNSEEN: node_result.RankKey = (0, 0, (), 0)


@dataclass(frozen=True, slots=True)
class Filling:
    """How many members of one shape a node takes, and why not one more.

    `standing` is that of the first. `refusal` is None where all of them were taken, and on a node
    that reaches no device of ours.
    """

    count: int
    refusal: allocator_types.NodeRejection | None
    standing: node_result.RankKey = _UNSEEN


class Known:
    """What nodes told to shapes of members, kept from gang to gang.

    For one view as it changes and what lies on it, and for one way of deciding.
    """

    def __init__(self) -> None:
        self._recall: result_cache.ResultCache | None = None
        self._world = -1

    def of(self, view: snapshot.Snapshot, shape: Hashable) -> node_result.SignatureResults:
        """Of a shape."""
        if self._recall is None or view.generation != self._world:
            self._recall = result_cache.ResultCache(view)
            self._world = view.generation
        return self._recall.get(shape)


class Trial:
    """Of one gang, members called by their places in it."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        gang: Sequence[allocator_types.Workload],
        deciding: settings.Settings,
        known: Known | None = None,
    ) -> None:
        self._known = Known() if known is None else known
        self._view = overlay.Overlay(view)
        self._gang = gang
        self._deciding = deciding
        self._rooms = node_capacity.NodeCapacityCache()
        self._seats: list[tuple[int, gang_types.Seat]] = []
        self._given: dict[ids.Key, claims.Claim] = {}
        self._questions: dict[ids.Key, node_result.NodeQuery] = {}
        self._alike: dict[Hashable, Filling] = {}
        self._told: dict[Hashable, node_result.SignatureResults] = {}
        self._uuids: dict[Hashable, bool] = {}
        self._shapes: dict[int, Hashable] = {}
        self._common = _common(gang)
        self._joining = frozenset(term for one in gang for term in one.pod.pod_affinity.anti)

    @property
    def seats(self) -> tuple[tuple[int, gang_types.Seat], ...]:
        """Who sits, in the order in which they sat down."""
        return tuple(self._seats)

    @property
    def entered(self) -> frozenset[ids.NodeName]:
        """The nodes on which members sit."""
        return frozenset(seat.placement.node for _, seat in self._seats)

    @property
    def roams(self) -> bool:
        """Whether one that sits has a device that other nodes may reach."""
        picks = (pick for _, seat in self._seats for pick in seat.placement.assignments)
        return any(pick.reach.node is None for pick in picks)

    def changed(self, at: int) -> bool:
        """Whether a claim of a member was settled by one that sits."""
        return self.member(at) is not self._gang[at]

    def member(self, at: int) -> allocator_types.Workload:
        """A member as it is now: claims that it has in common with one that sits are settled."""
        found = self._gang[at]
        given = [self._given[one.key] for one in found.open_claims if one.key in self._given]
        if not given:
            return found
        rest = tuple(one for one in found.open_claims if one.key not in self._given)
        return replace(found, open_claims=rest, allocated_claims=(*found.allocated_claims, *given))

    def one_by_one(self, member: int) -> bool:
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
            found.setdefault(self._key(at), []).append(at)
        return [*found.values()]

    def filling(self, members: Sequence[int], name: ids.NodeName) -> Filling:
        """How many of members of one shape a node takes."""
        node, first = self._view.nodes[name], self.member(members[0])
        if name in first.avoided_nodes:
            why = allocator_types.NodeRejection(
                reasons.Reason.NODE_BACKED_OFF, first.avoided_nodes[name]
            )
            return Filling(0, why)
        question = self._question(first)
        if first.open_claims and not node_result.reaches_driver(question, node):
            return Filling(0, None)
        refused = filters.node_rejection(self._view, node, first) or self._apart_from(members, node)
        if refused is not None:
            return Filling(0, refused)
        found = self._of_devices(members, node)
        most = filters.max_pods(self._view, node, first.pod)
        if domain_filters.is_self_limiting(first.pod):
            most = min(most, self._together(members[: found.count], node))
        if most >= found.count:
            return found
        return Filling(most, self._crowded(members, node, most), found.standing)

    def seat(self, at: int, name: ids.NodeName, why: str) -> bool:
        """Whether a member found a place on a node; it sits there then."""
        member, node = self.member(at), self._view.nodes[name]
        if filters.rejection(self._view, node, member) is not None:
            return False
        question = self._question(member)
        found = self._answer(at, question, node)
        if not isinstance(found, node_result.Fit):
            return False
        picks = node_result.assignments(question, node, found)
        placement = allocator_types.Placement(name, picks, why, found.steps)
        made = allocation_result.build_allocations(self._view, member, placement, stamped="")
        self._view.take(snapshot.InFlight(member.pod, name, made))
        for one in member.open_claims:
            if one.key in self._common:
                self._given[one.key] = replace(one, allocation=made[one.key])
        self._seats.append((at, gang_types.Seat(member, placement)))
        return True

    def rise(self, count: int) -> None:
        """The last ones stand up again."""
        self._view.undo(count)
        for _ in range(count):
            _, seat = self._seats.pop()
            for one in seat.workload.open_claims:
                self._given.pop(one.key, None)
        if self._common:
            self._forget()

    def _key(self, at: int) -> Hashable:
        member = self.member(at)
        if any(one.key in self._common for one in member.open_claims):
            return at
        if at not in self._shapes:
            told_apart = domain_filters.pod_signature(self._view, self._gang[at].pod, self._joining)
            avoided = frozenset(member.avoided_nodes.items())
            self._shapes[at] = (
                workload_signature.workload_signature(self._gang[at]),
                avoided,
                told_apart,
            )
        settled = tuple(one.key for one in member.allocated_claims)
        return self._shapes[at], settled

    def _question(self, member: allocator_types.Workload) -> node_result.NodeQuery:
        """What is asked of nodes for a member, in the rooms as they are now."""
        if self._rooms.refresh(self._view):
            self._forget()
        key = member.pod.key
        found = self._questions.get(key)
        if found is None or found.workload is not member:
            wants = allocator_requests.parse_requests(self._view, member.open_claims)
            # `blocker` was asked before, so what is open can be asked for.
            known = () if isinstance(wants, allocator_types.Unschedulable) else wants
            verdicts = self._deciding.rules.for_workload(self._view, member)
            found = self._questions[key] = node_result.NodeQuery(
                self._view, self._rooms, member, known, self._deciding, verdicts
            )
        return found

    def _of_devices(self, members: Sequence[int], node: nodes.Node) -> Filling:
        """As far as devices go; as nodes that are alike were filled, where they were."""
        first = self.member(members[0])
        question = self._question(first)
        look = (
            None
            if self._apart(members[0], question)
            else node_result.query_signature(question, node)
        )
        if look is None:
            return self._filled(members, node)
        key = self._key(members[0]), look
        known = self._alike.get(key)
        if known is None or (known.refusal is None and known.count < len(members)):
            known = self._alike[key] = self._filled(members, node)
        if known.count < len(members):
            return known
        return Filling(len(members), None, known.standing)

    def _answer(
        self, at: int, question: node_result.NodeQuery, node: nodes.Node
    ) -> node_result.Fit | allocator_types.NodeRejection:
        """Of a node to a member; as one that is alike told to one of its shape, where one did."""
        if self._apart(at, question):
            return node_result.evaluate_devices(question, node)
        key = self._key(at)
        if key not in self._told:
            alone = isinstance(key, int)
            self._told[key] = (
                node_result.SignatureResults() if alone else self._known.of(self._view, key)
            )
        return self._told[key].get(question, node)

    def _apart(self, at: int, question: node_result.NodeQuery) -> bool:
        """Whether a member may tell nodes apart that are alike."""
        key = self._key(at)
        if key not in self._uuids:
            workload = question.workload
            self._uuids[key] = node_signature.depends_on_uuids(
                self._view, workload.open_claims, question.requests
            )
        return self._uuids[key]

    def _forget(self) -> None:
        """Nothing that was told of a node holds any more."""
        self._alike.clear()
        self._told.clear()

    def _filled(self, members: Sequence[int], node: nodes.Node) -> Filling:
        """A node is filled and emptied again."""
        standing, refusal = _UNSEEN, None
        count = 0
        for at in members:
            member = self.member(at)
            question = self._question(member)
            found = self._answer(at, question, node)
            if not isinstance(found, node_result.Fit):
                refusal = found
                break
            standing = standing if count else found.rank_key
            made = allocator_types.Placement(
                node.name, node_result.assignments(question, node, found), ""
            )
            given = allocation_result.build_allocations(self._view, member, made, stamped="")
            self._view.take(snapshot.InFlight(member.pod, node.name, given))
            count += 1
        self._view.undo(count)
        return Filling(count, refusal, standing)

    def _apart_from(
        self, members: Sequence[int], node: nodes.Node
    ) -> allocator_types.NodeRejection | None:
        """Say why pods of other nodes keep them away; the spread of several changes by each."""
        asked_of = domain_filters.prefilter(self._view, self.member(members[0]))
        if asked_of is None:
            return None
        return (asked_of if len(members) == 1 else asked_of.without_spread).rejection(node)

    def _together(self, members: Sequence[int], node: nodes.Node) -> int:
        """Count how many of them their own affinity lets be on a node."""
        count = 0
        for number in members:
            member = self.member(number)
            asked_of = domain_filters.prefilter(self._view, member)
            if asked_of is not None and asked_of.without_spread.rejection(node) is not None:
                break
            self._view.take(snapshot.InFlight(member.pod, node.name, {}))
            count += 1
        self._view.undo(count)
        return count

    def _crowded(
        self, members: Sequence[int], node: nodes.Node, count: int
    ) -> allocator_types.NodeRejection | None:
        """Why a node with so many of them has no room for the next."""
        for at in members[:count]:
            self._view.take(snapshot.InFlight(self._gang[at].pod, node.name, {}))
        refused = filters.rejection(self._view, node, self.member(members[count]))
        self._view.undo(count)
        return refused


def _common(gang: Sequence[allocator_types.Workload]) -> frozenset[ids.Key]:
    """Open claims that more than one member has."""
    return frozenset(_repeated(one.key for member in gang for one in member.open_claims))


def _repeated(keys: Iterator[ids.Key]) -> Iterator[ids.Key]:
    seen: set[ids.Key] = set()
    for key in keys:
        if key in seen:
            yield key
        seen.add(key)
