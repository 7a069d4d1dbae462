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

_MOST_SETS = 20_000


@dataclass(frozen=True, slots=True)
class Scene:
    """A node as policies see it, and the pod that comes to it; `first` is a pool's first card."""

    node: ids.NodeName
    room: base.Room
    pod: pods.Pod
    first: Mapping[snapshot.PoolKey, int]

    def taken(
        self, spot: candidates.Spot, takes: Mapping[str, quantities.Quantity]
    ) -> base.Taken | None:
        """What a result takes of its card; None of a device that is no GPU of ours."""
        first = self.first.get((spot.pool.driver, spot.pool.name))
        face = None if first is None else pool_layout.of(spot.pool).faces.get(spot.device.name)
        if first is None or face is None:
            return None
        return node_capacity.taken(face, takes, first + face.card)

    def candidate(self, taken: Iterable[base.Taken]) -> base.Candidate:
        """The node, with so much of it taken."""
        asked, found = self.pod.requests, tuple(taken)
        after = self.room.without(found, asked.get("cpu", 0), asked.get("memory", 0))
        return base.Candidate(self.node, self.room, after, found)


def scene(view: snapshot.Snapshot, node: ids.NodeName, room: base.Room, pod: pods.Pod) -> Scene:
    """Of a node; `room` is what it has left."""
    first: dict[snapshot.PoolKey, int] = {}
    cards = 0
    for share in view.reachable_pools(node):
        if share.pool.driver == view.driver:
            first[share.pool.driver, share.pool.name] = cards
            cards += len(pool_layout.of(share.pool).idle)
    return Scene(node, room, pod, first)


class Options:
    """The ways to serve a workload on one node, and on all whose devices are like its devices.

    What does not depend on the rest of a node is found once: which devices are alike, and whether
    a choice of them does.
    """

    def __init__(self, problem: search.Problem, first: Scene, budget: int | None) -> None:
        """Of a node, seen as `first`; at most `budget` devices are tried for each way."""
        self._problem = problem
        self._first = first
        self._budget = budget
        self._kinds = gpu_links.kinds(first.room.cards, first.room.wiring)
        self._found: dict[int, list[_Option]] = {}
        self._solved: dict[Hashable, search.Solved | search.Unsolved] = {}

    def solve(self, scene: Scene, judge: ranking.Ranking) -> search.Solved | search.Unsolved:
        """The best solution there is."""
        wants = self._problem.offers
        if judge.cares or any(one.by_need for want in wants for one in want):
            for narrowed in self._best_first(_Order(scene, judge)):
                found = self._search(narrowed)
                if isinstance(found, search.Solved):
                    return found
        return self._search(wants)

    def _search(
        self, found: Sequence[Sequence[candidates.Offer]]
    ) -> search.Solved | search.Unsolved:
        key = tuple((id(one.way), tuple(one.places)) for want in found for one in want)
        if key not in self._solved:
            problem = replace(self._problem, offers=found)
            self._solved[key] = search.solve(problem, self._budget)
        return self._solved[key]

    def _best_first(self, order: "_Order") -> Iterator[Sequence[Sequence[candidates.Offer]]]:
        """The offers with fewer devices to choose from, or in another order, the best first."""
        wants = self._problem.offers
        ways = [offer for want in wants for offer in want]
        if not ways or any(one.failing or one.way.request.everything for one in ways):
            return
        if len(wants) == 1:
            for offer in wants[0]:
                for one in self._narrowed(offer, order):
                    yield [[one]]
        elif all(one.places == ways[0].places for one in ways) and self._whole(ways[0]):
            for places in order.of(self._sets(ways[0], sum(want[0].count for want in wants))):
                yield [[_narrow(one, places) for one in want] for want in wants]
        else:
            yield [[_narrow(one, self._sorted(one, order)) for one in want] for want in wants]

    def _narrowed(self, offer: candidates.Offer, order: "_Order") -> Iterator[candidates.Offer]:
        """One way with ever other devices."""
        if offer.count == 1:
            found = order.of(self._singles(offer), by_need=offer.by_need)
        elif self._whole(offer):
            found = order.of(self._sets(offer, offer.count))
        else:
            found = iter([self._sorted(offer, order)])
        return (_narrow(offer, places) for places in found)

    def _singles(self, offer: candidates.Offer) -> list["_Option"]:
        """Single devices, those together that nothing tells apart."""
        known = self._found.get(id(offer))
        if known is not None:
            return known
        groups: dict[Hashable, list[int]] = {}
        takens: dict[Hashable, base.Taken | None] = {}
        for place in offer.places:
            taken = self._taken(offer, place)
            kind = None if taken is None else taken._replace(card=self._kinds[taken.card])
            groups.setdefault(kind, []).append(place)
            takens.setdefault(kind, taken)
        made = [_Option(places, (takens[kind],)) for kind, places in groups.items()]
        self._found[id(offer)] = made
        return made

    def _sorted(self, offer: candidates.Offer, order: "_Order") -> list[int]:
        found = order.of(self._singles(offer), by_need=offer.by_need)
        return [*itertools.chain.from_iterable(found)]

    def _sets(self, offer: candidates.Offer, count: int) -> list["_Option"]:
        """Sets of whole GPUs, one for all that nothing tells apart."""
        known = self._found.get(id(offer))
        if known is not None:
            return known
        groups: dict[int, list[int]] = {}
        for place in offer.places:
            taken = self._taken(offer, place)
            if taken is not None:
                groups.setdefault(self._kinds[taken.card], []).append(place)
        drawn = itertools.islice(_draws([*groups.values()], count), _MOST_SETS)
        made = [
            _Option(sorted(places), tuple(self._taken(offer, place) for place in places))
            for places in drawn
        ]
        self._found[id(offer)] = made
        return made

    def _whole(self, offer: candidates.Offer) -> bool:
        """Whether each device is all of a GPU of its own."""
        found = [self._taken(offer, place) for place in offer.places]
        return len({one.card for one in found if one and one.mode == base.WHOLE}) == len(found)

    def _taken(self, offer: candidates.Offer, place: int) -> base.Taken | None:
        return self._first.taken(self._problem.spots[place], offer.takes.get(place, {}))


class _Option(NamedTuple):
    """Devices, by their places, and what they take of cards."""

    places: list[int]
    takens: tuple[base.Taken | None, ...]


class _Scored(NamedTuple):
    """The places of an option, and the node with it taken."""

    places: list[int]
    candidate: base.Candidate


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of options on a node, the best one first; of equals the lowest places."""

    scene: Scene
    judge: ranking.Ranking

    def of(self, found: Sequence[_Option], *, by_need: bool = False) -> Iterator[list[int]]:
        """The places of options."""
        if len(found) == 1:
            yield found[0].places
            return
        groups: dict[int, list[_Scored]] = {}
        for one in found:
            known = (taken for taken in one.takens if taken is not None)
            made = _Scored(one.places, self.scene.candidate(known))
            groups.setdefault(memory_of(one.takens) if by_need else 0, []).append(made)
        for memory in sorted(groups):
            yield from self._by(0, groups[memory])

    def _by(self, policy: int, found: Sequence[_Scored]) -> Iterator[list[int]]:
        """By the policies from one on: a later one is asked about those that are equal so far."""
        if len(found) == 1 or policy == self.judge.count:
            yield from sorted(one.places for one in found)
            return
        groups: dict[int, list[_Scored]] = {}
        for one in found:
            groups.setdefault(self.judge.score(policy, one.candidate), []).append(one)
        for score in sorted(groups, reverse=True):
            yield from self._by(policy + 1, groups[score])


def memory_of(takens: Iterable[base.Taken | None]) -> int:
    """How many bytes of GPU memory are taken."""
    return sum(one.memory for one in takens if one is not None)


def _narrow(offer: candidates.Offer, places: Sequence[int]) -> candidates.Offer:
    return replace(offer, places=[*places])


def _draws(groups: Sequence[Sequence[int]], count: int) -> Iterator[list[int]]:
    """So many of the groups' members in all, the first ones of each."""
    if not groups:
        if count == 0:
            yield []
        return
    spare = sum(map(len, groups[1:]))
    for taken in range(min(len(groups[0]), count), max(count - spare, 0) - 1, -1):
        for rest in _draws(groups[1:], count - taken):
            yield [*groups[0][:taken], *rest]
