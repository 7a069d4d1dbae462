"""Which devices of a node to try first: policies put the ways to serve a workload in order. Pure.

Ways that nothing tells apart count as one, so the best is the best of all of them. Where requests
differ from each other, each is given what is best for it alone. A request by need is given what
takes the least memory of a GPU, whatever policies say; they decide among what takes as much.
"""

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import ids
from driver.controller import view as cluster
from driver.controller.allocation import anatomy, offers, ranking, rooms, search
from driver.controller.allocation.policies import base, wiring
from driver.resources import pods, quantity

_MOST_SETS = 20_000


@dataclass(frozen=True, slots=True)
class Scene:
    """A node as policies see it, and the pod that comes to it; `first` is a pool's first card."""

    node: ids.NodeName
    room: base.Room
    pod: pods.Pod
    first: Mapping[cluster.PoolKey, int]

    def taken(self, spot: offers.Spot, takes: Mapping[str, quantity.Quantity]) -> base.Taken | None:
        """What a result takes of its card; None of a device that is no GPU of ours."""
        first = self.first.get((spot.pool.driver, spot.pool.name))
        face = None if first is None else anatomy.of(spot.pool).faces.get(spot.device.name)
        if first is None or face is None:
            return None
        return rooms.taken(face, takes, first + face.card)

    def candidate(self, taken: Iterable[base.Taken]) -> base.Candidate:
        """The node, with so much of it taken."""
        asked, found = self.pod.requests, tuple(taken)
        after = self.room.without(found, asked.get("cpu", 0), asked.get("memory", 0))
        return base.Candidate(self.node, self.room, after, found)


def scene(view: cluster.ClusterView, node: ids.NodeName, room: base.Room, pod: pods.Pod) -> Scene:
    """Of a node; `room` is what it has left."""
    first: dict[cluster.PoolKey, int] = {}
    cards = 0
    for share in view.shares(node):
        if share.pool.driver == view.driver:
            first[share.pool.driver, share.pool.name] = cards
            cards += len(anatomy.of(share.pool).idle)
    return Scene(node, room, pod, first)


def solve(
    problem: search.Problem, scene: Scene, judge: ranking.Ranking, budget: int | None
) -> search.Solved | search.Unsolved:
    """The best solution there is; at most `budget` devices are tried for each."""
    if not judge.cares and not any(one.by_need for want in problem.offers for one in want):
        return search.solve(problem, budget)
    for narrowed in _Options(problem, scene, judge).best_first():
        found = search.solve(narrowed, budget)
        if isinstance(found, search.Solved):
            return found
    return search.solve(problem, budget)


class _Options:
    def __init__(self, problem: search.Problem, scene: Scene, judge: ranking.Ranking) -> None:
        self._problem = problem
        self._scene = scene
        self._judge = judge
        self._kinds = wiring.kinds(scene.room.cards, scene.room.wiring)

    def best_first(self) -> Iterator[search.Problem]:
        """The problem with fewer devices to choose from, or in another order, the best first."""
        wants = self._problem.offers
        ways = [offer for want in wants for offer in want]
        if not ways or any(one.failing or one.way.request.everything for one in ways):
            return
        if len(wants) == 1:
            for offer in wants[0]:
                for one in self._narrowed(offer):
                    yield self._with([[one]])
        elif all(one.places == ways[0].places for one in ways) and self._whole(ways[0]):
            for places in self._sets(ways[0], sum(want[0].count for want in wants)):
                yield self._with([[_narrow(one, places) for one in want] for want in wants])
        else:
            yield self._with([[_narrow(one, self._sorted(one)) for one in want] for want in wants])

    def _with(self, found: Sequence[Sequence[offers.Offer]]) -> search.Problem:
        return replace(self._problem, offers=found)

    def _narrowed(self, offer: offers.Offer) -> Iterator[offers.Offer]:
        """One way with ever other devices."""
        if offer.count == 1:
            found: Iterable[Sequence[int]] = self._singles(offer)
        elif self._whole(offer):
            found = self._sets(offer, offer.count)
        else:
            found = [self._sorted(offer)]
        return (_narrow(offer, places) for places in found)

    def _singles(self, offer: offers.Offer) -> list[list[int]]:
        """Single devices, those together that nothing tells apart, the best ones first."""
        groups: dict[Hashable, list[int]] = {}
        takens: dict[Hashable, base.Taken | None] = {}
        for place in offer.places:
            taken = self._taken(offer, place)
            kind = None if taken is None else taken._replace(card=self._kinds[taken.card])
            groups.setdefault(kind, []).append(place)
            takens.setdefault(kind, taken)
        if len(groups) == 1:
            return [*groups.values()]
        found = ((groups[kind], [taken]) for kind, taken in takens.items())
        return self._ordered(found, by_need=offer.by_need)

    def _sorted(self, offer: offers.Offer) -> list[int]:
        return [*itertools.chain.from_iterable(self._singles(offer))]

    def _sets(self, offer: offers.Offer, count: int) -> list[list[int]]:
        """Sets of whole GPUs, one for all that nothing tells apart, the best ones first."""
        groups: dict[int, list[int]] = {}
        for place in offer.places:
            taken = self._taken(offer, place)
            if taken is not None:
                groups.setdefault(self._kinds[taken.card], []).append(place)
        drawn = itertools.islice(_draws([*groups.values()], count), _MOST_SETS)
        return self._ordered(
            (sorted(places), [self._taken(offer, place) for place in places]) for places in drawn
        )

    def _ordered(
        self,
        found: Iterable[tuple[list[int], Sequence[base.Taken | None]]],
        *,
        by_need: bool = False,
    ) -> list[list[int]]:
        scored = [
            (memory_of(takens) if by_need else 0, self._scores(takens), places)
            for places, takens in found
        ]
        scored.sort(key=lambda one: (one[0], tuple(-score for score in one[1]), one[2]))
        return [places for *_, places in scored]

    def _scores(self, takens: Iterable[base.Taken | None]) -> ranking.Scores:
        known = (one for one in takens if one is not None)
        return self._judge.scores(self._scene.candidate(known))

    def _whole(self, offer: offers.Offer) -> bool:
        """Whether each device is all of a GPU of its own."""
        found = [self._taken(offer, place) for place in offer.places]
        return len({one.card for one in found if one and one.mode == base.WHOLE}) == len(found)

    def _taken(self, offer: offers.Offer, place: int) -> base.Taken | None:
        return self._scene.taken(self._problem.spots[place], offer.takes.get(place, {}))


def memory_of(takens: Iterable[base.Taken | None]) -> int:
    """How many bytes of GPU memory are taken."""
    return sum(one.memory for one in takens if one is not None)


def _narrow(offer: offers.Offer, places: Sequence[int]) -> offers.Offer:
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
