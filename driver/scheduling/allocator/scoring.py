"""Which devices of a node to try first: policies put the ways to serve a workload in order. Pure.

Ways that nothing tells apart count as one, so the best is the best of all of them. Where requests
differ from each other, each is given what is best for it alone. A request by need is given what
takes the least memory of a GPU, whatever policies say; they decide among what takes as much.
"""

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from driver import ids
from driver.resources import quantities
from driver.resources.core import pods
from driver.scheduling.allocator import candidates, search
from driver.scheduling.allocator.capacity import node_capacity, pool_layout
from driver.scheduling.allocator.policies import base, gpu_links, ranking
from driver.scheduling.snapshot import snapshot

_MAX_SETS = 20_000


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """A node as policies see it, and the pod that comes to it; `first` is a pool's first card."""

    node: ids.NodeName
    capacity: base.NodeCapacity
    pod: pods.Pod
    first_gpu: Mapping[snapshot.PoolKey, int]

    def usage(
        self, spot: candidates.NodeDevice, takes: Mapping[str, quantities.Quantity]
    ) -> base.Usage | None:
        """What a result takes of its card; None of a device that is no GPU of ours."""
        first = self.first_gpu.get((spot.pool.driver, spot.pool.name))
        face = (
            None if first is None else pool_layout.get_layout(spot.pool).faces.get(spot.device.name)
        )
        if first is None or face is None:
            return None
        return node_capacity.device_usage(face, takes, first + face.gpu)

    def candidate(self, taken: Iterable[base.Usage]) -> base.Candidate:
        """The node, with so much of it taken."""
        asked, found = self.pod.requests, tuple(taken)
        after = self.capacity.without(found, asked.get("cpu", 0), asked.get("memory", 0))
        return base.Candidate(self.node, self.capacity, after, found)


def scoring_context(
    view: snapshot.Snapshot, node: ids.NodeName, room: base.NodeCapacity, pod: pods.Pod
) -> ScoringContext:
    """Of a node; `room` is what it has left."""
    first: dict[snapshot.PoolKey, int] = {}
    cards = 0
    for share in view.reachable_pools(node):
        if share.pool.driver == view.driver:
            first[share.pool.driver, share.pool.name] = cards
            cards += len(pool_layout.get_layout(share.pool).idle_gpus)
    return ScoringContext(node, room, pod, first)


class OptionSearch:
    """The ways to serve a workload on one node, and on all whose devices are like its devices.

    What does not depend on the rest of a node is found once: which devices are alike, and whether
    a choice of them does.
    """

    def __init__(self, problem: search.Problem, first: ScoringContext, budget: int | None) -> None:
        """Of a node, seen as `first`; at most `budget` devices are tried for each way."""
        self._problem = problem
        self._context = first
        self._budget = budget
        self._gpu_classes = gpu_links.gpu_classes(first.capacity.gpus, first.capacity.topology)
        self._by_candidates: dict[int, list[_Option]] = {}
        self._solutions: dict[Hashable, search.Solved | search.Unsolved] = {}

    def solve(
        self, scene: ScoringContext, judge: ranking.PolicyChain
    ) -> search.Solved | search.Unsolved:
        """The best solution there is."""
        wants = self._problem.candidates
        if judge.has_policies or any(one.by_need for want in wants for one in want):
            for narrowed in self._best_first(_Order(scene, judge)):
                found = self._search(narrowed)
                if isinstance(found, search.Solved):
                    return found
        return self._search(wants)

    def _search(
        self, found: Sequence[Sequence[candidates.RequestCandidates]]
    ) -> search.Solved | search.Unsolved:
        key = tuple((id(one.subrequest), tuple(one.indexes)) for want in found for one in want)
        if key not in self._solutions:
            problem = replace(self._problem, candidates=found)
            self._solutions[key] = search.solve(problem, self._budget)
        return self._solutions[key]

    def _best_first(
        self, order: "_Order"
    ) -> Iterator[Sequence[Sequence[candidates.RequestCandidates]]]:
        """The offers with fewer devices to choose from, or in another order, the best first."""
        wants = self._problem.candidates
        ways = [offer for want in wants for offer in want]
        if not ways or any(
            one.selector_errors or one.subrequest.request.everything for one in ways
        ):
            return
        if len(wants) == 1:
            for offer in wants[0]:
                for one in self._restricted(offer, order):
                    yield [[one]]
        elif all(one.indexes == ways[0].indexes for one in ways) and self._is_whole(ways[0]):
            for places in order.sorted_indexes(
                self._sets(ways[0], sum(want[0].count for want in wants))
            ):
                yield [[_restrict(one, places) for one in want] for want in wants]
        else:
            yield [[_restrict(one, self._sorted(one, order)) for one in want] for want in wants]

    def _restricted(
        self, offer: candidates.RequestCandidates, order: "_Order"
    ) -> Iterator[candidates.RequestCandidates]:
        """One way with ever other devices."""
        if offer.count == 1:
            found = order.sorted_indexes(self._singles(offer), by_need=offer.by_need)
        elif self._is_whole(offer):
            found = order.sorted_indexes(self._sets(offer, offer.count))
        else:
            found = iter([self._sorted(offer, order)])
        return (_restrict(offer, places) for places in found)

    def _singles(self, offer: candidates.RequestCandidates) -> list["_Option"]:
        """Single devices, those together that nothing tells apart."""
        known = self._by_candidates.get(id(offer))
        if known is not None:
            return known
        groups: dict[Hashable, list[int]] = {}
        takens: dict[Hashable, base.Usage | None] = {}
        for place in offer.indexes:
            taken = self._usage(offer, place)
            kind = None if taken is None else taken._replace(gpu=self._gpu_classes[taken.gpu])
            groups.setdefault(kind, []).append(place)
            takens.setdefault(kind, taken)
        made = [_Option(places, (takens[kind],)) for kind, places in groups.items()]
        self._by_candidates[id(offer)] = made
        return made

    def _sorted(self, offer: candidates.RequestCandidates, order: "_Order") -> list[int]:
        found = order.sorted_indexes(self._singles(offer), by_need=offer.by_need)
        return [*itertools.chain.from_iterable(found)]

    def _sets(self, offer: candidates.RequestCandidates, count: int) -> list["_Option"]:
        """Sets of whole GPUs, one for all that nothing tells apart."""
        known = self._by_candidates.get(id(offer))
        if known is not None:
            return known
        groups: dict[int, list[int]] = {}
        for place in offer.indexes:
            taken = self._usage(offer, place)
            if taken is not None:
                groups.setdefault(self._gpu_classes[taken.gpu], []).append(place)
        drawn = itertools.islice(_group_draws([*groups.values()], count), _MAX_SETS)
        made = [
            _Option(sorted(places), tuple(self._usage(offer, place) for place in places))
            for places in drawn
        ]
        self._by_candidates[id(offer)] = made
        return made

    def _is_whole(self, offer: candidates.RequestCandidates) -> bool:
        """Whether each device is all of a GPU of its own."""
        found = [self._usage(offer, place) for place in offer.indexes]
        return len({one.gpu for one in found if one and one.mode == base.WHOLE}) == len(found)

    def _usage(self, offer: candidates.RequestCandidates, place: int) -> base.Usage | None:
        return self._context.usage(self._problem.devices[place], offer.consumption.get(place, {}))


class _Option(NamedTuple):
    """Devices, by their places, and what they take of cards."""

    indexes: list[int]
    usages: tuple[base.Usage | None, ...]


class _Scored(NamedTuple):
    """The places of an option, and the node with it taken."""

    indexes: list[int]
    candidate: base.Candidate


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of options on a node, the best one first; of equals the lowest places."""

    context: ScoringContext
    policies: ranking.PolicyChain

    def sorted_indexes(
        self, found: Sequence[_Option], *, by_need: bool = False
    ) -> Iterator[list[int]]:
        """The places of options."""
        if len(found) == 1:
            yield found[0].indexes
            return
        groups: dict[int, list[_Scored]] = {}
        for one in found:
            known = (taken for taken in one.usages if taken is not None)
            made = _Scored(one.indexes, self.context.candidate(known))
            groups.setdefault(total_memory(one.usages) if by_need else 0, []).append(made)
        for memory in sorted(groups):
            yield from self._by_policy(0, groups[memory])

    def _by_policy(self, policy: int, found: Sequence[_Scored]) -> Iterator[list[int]]:
        """By the policies from one on: a later one is asked about those that are equal so far."""
        if len(found) == 1 or policy == self.policies.count:
            yield from sorted(one.indexes for one in found)
            return
        groups: dict[int, list[_Scored]] = {}
        for one in found:
            groups.setdefault(self.policies.score(policy, one.candidate), []).append(one)
        for score in sorted(groups, reverse=True):
            yield from self._by_policy(policy + 1, groups[score])


def total_memory(takens: Iterable[base.Usage | None]) -> int:
    """How many bytes of GPU memory are taken."""
    return sum(one.memory for one in takens if one is not None)


def _restrict(
    offer: candidates.RequestCandidates, places: Sequence[int]
) -> candidates.RequestCandidates:
    return replace(offer, indexes=[*places])


def _group_draws(groups: Sequence[Sequence[int]], count: int) -> Iterator[list[int]]:
    """So many of the groups' members in all, the first ones of each."""
    if not groups:
        if count == 0:
            yield []
        return
    spare = sum(map(len, groups[1:]))
    for taken in range(min(len(groups[0]), count), max(count - spare, 0) - 1, -1):
        for rest in _group_draws(groups[1:], count - taken):
            yield [*groups[0][:taken], *rest]
