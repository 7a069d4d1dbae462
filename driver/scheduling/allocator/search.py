"""Which device goes to which request on one node. Pure; its steps are counted and bounded.

Depth first, over claims, requests, alternatives and devices in the order in which they are
preferred, so that the first solution is the one that kube-scheduler's allocator finds: what is
skipped, or cut off early, leads to no solution. Without recursion: a workload may ask hundreds of
devices.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from driver.resources.dra import claims
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import base as tied
from driver.scheduling.allocator.constraints import counters, feasibility, match_attribute
from driver.scheduling.allocator.equivalence import device_classes


@dataclass(frozen=True, slots=True)
class Choice:
    """A device for a request: the place of its request, the way that was taken, its spot."""

    want: int
    offer: candidates.Offer
    place: int


@dataclass(frozen=True, slots=True)
class Solved:
    """Every request has its devices, in the order of requests."""

    choices: tuple[Choice, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Unsolved:
    """No solution. `broken` says what error ended the search.

    With `given_up` the budget of steps ended first: there may be a solution.
    """

    steps: int
    broken: str = ""
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A node's devices, and for each request of the workload (in order) an offer a way."""

    lefts: counters.Lefts
    spots: Sequence[candidates.Spot]
    offers: Sequence[Sequence[candidates.Offer]]
    claim_of: Sequence[int]
    """The place of each request's claim in the workload."""
    bonds: Sequence[match_attribute.Bond]
    pacts: Sequence[tied.Pact] = ()

    @property
    def ties(self) -> Sequence[tied.Pact]:
        """The constraints of the API, and what else ties devices together."""
        return (*self.bonds, *self.pacts)


class _Error(Exception):
    """The reference ends the search on the node here."""


class _Spent(Exception):
    pass


@dataclass(slots=True)
class _Ways:
    """The choice of a way for a request."""

    want: int
    next: int = 0


@dataclass(slots=True)
class _Devices:
    """The choice of the next device of a way: `number` of them are chosen before it."""

    want: int
    offer: candidates.Offer
    number: int
    next: int
    place: int | None = None
    kind: Hashable | None = None
    failed: set[Hashable] = field(default_factory=set)


def solve(problem: Problem, budget: int | None = None) -> Solved | Unsolved:
    """The first solution, or that there is none; at most `budget` devices are tried."""
    for tie in problem.ties:
        tie.clear()
    return _Search(problem, budget).run()


class _Search:
    def __init__(self, problem: Problem, budget: int | None) -> None:
        self._problem = problem
        self._budget = budget
        self._ties = problem.ties
        self._tally = counters.Tally(problem.lefts, problem.spots)
        self._prospects = feasibility.Prospects(problem.spots, problem.bonds, self._tally)
        self._likeness = device_classes.Likeness(
            problem.spots, problem.offers, self._ties, self._tally
        )
        self._stack: list[_Ways | _Devices] = []
        self._had = [0] * (max(problem.claim_of, default=-1) + 1)
        self._steps = 0

    def run(self) -> Solved | Unsolved:
        try:
            found = self._run()
        except _Error as error:
            return Unsolved(self._steps, broken=str(error))
        except _Spent:
            return Unsolved(self._steps, given_up=True)
        if found is None:
            return Unsolved(self._steps)
        return Solved(found, self._steps)

    def _run(self) -> tuple[Choice, ...] | None:
        if not self._problem.offers:
            return ()
        alone = len(self._problem.offers) == 1 and all(
            offer.count == 1 for offer in self._problem.offers[0]
        )
        if not alone and not self._hopeful(0, None):
            return None
        self._stack.append(_Ways(0))
        while self._stack:
            top = self._stack[-1]
            follow = self._way(top) if isinstance(top, _Ways) else self._device(top)
            if follow is None:
                self._stack.pop()
            elif isinstance(follow, _Ways) and follow.want == len(self._problem.offers):
                return tuple(self._chosen())
            else:
                self._stack.append(follow)
        return None

    def _chosen(self) -> Iterator[Choice]:
        for one in self._stack:
            if isinstance(one, _Devices) and one.place is not None:
                yield Choice(one.want, one.offer, one.place)

    def _way(self, at: _Ways) -> _Devices | None:
        """The next way that may do, with the choice of its first device."""
        ways = self._problem.offers[at.want]
        had = self._had[self._problem.claim_of[at.want]]
        while at.next < len(ways):
            offer = ways[at.next]
            at.next += 1
            if had + offer.count <= claims.MAX_RESULTS and offer.places and not offer.barred:
                return _Devices(at.want, offer, number=0, next=0)
        return None

    def _device(self, at: _Devices) -> _Ways | _Devices | None:
        """The next device that may do, with the choice that follows it."""
        self._undo(at)
        places = at.offer.places
        last = at.number + 1 if at.offer.way.request.everything else len(places)
        at.next = max(at.next, at.number) if at.offer.way.request.everything else at.next
        while at.next < last:
            place = places[at.next]
            at.next += 1
            if self._do(at, place):
                if at.number + 1 < at.offer.count:
                    return _Devices(at.want, at.offer, at.number + 1, at.next)
                return _Ways(at.want + 1)
        return None

    def _do(self, at: _Devices, place: int) -> bool:
        """Take a device, unless it, or what it leaves, cannot do."""
        claim = self._problem.claim_of[at.want]
        if place in at.offer.failing:
            if self._tally.used(place):
                return False
            raise _Error(f"{self._problem.spots[place].id.device}: {at.offer.failing[place]}")
        kind = self._likeness.kind(place) if at.failed else None
        if kind is not None and kind in at.failed:
            return False
        self._steps += 1
        if self._budget is not None and self._steps > self._budget:
            raise _Spent
        if not self._tally.take(place, at.offer, claim):
            return False
        ties = [one for one in self._ties if one.covers(claim, at.offer.way.name)]
        refusing = next((tie for tie in ties if not tie.accepts(place)), None)
        if refusing is not None:
            self._tally.give_back(place, at.offer)
            if at.offer.way.request.everything and refusing in self._problem.bonds:
                name = self._problem.spots[place].id.device
                raise _Error(f"a constraint keeps {name} from All, which needs it")
            return False
        for tie in ties:
            tie.add(place)
        self._had[claim] += 1
        at.place = place
        if not self._hopeful(at.want + 1, at):
            self._undo(at)
            return False
        return True

    def _undo(self, at: _Devices) -> None:
        """Give the chosen device back, and remember that its like will not do either."""
        if at.place is None:
            return
        claim = self._problem.claim_of[at.want]
        for tie in self._ties:
            if tie.covers(claim, at.offer.way.name):
                tie.drop()
        self._tally.give_back(at.place, at.offer)
        self._had[claim] -= 1
        kind = self._likeness.kind(at.place)
        at.place = None
        if kind is not None:
            at.failed.add(kind)

    def _hopeful(self, want: int, at: _Devices | None) -> bool:
        """Whether the rest of a way, and every request from `want` on, may still be had."""
        claim_of, made = self._problem.claim_of, self._problem.offers
        demands: list[feasibility.Demand] = []
        if at is not None and at.number + 1 < at.offer.count:
            rest = feasibility.Option(at.offer, at.offer.count - at.number - 1, at.next)
            demands.append(feasibility.Demand(claim_of[at.want], (rest,)))
        for later in range(want, len(made)):
            options = tuple(
                feasibility.Option(offer, offer.count)
                for offer in made[later]
                if offer.places and not offer.barred
            )
            demands.append(feasibility.Demand(claim_of[later], options))
        return not demands or self._prospects.hopeful(demands)
