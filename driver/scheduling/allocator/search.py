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

    request: int
    candidates: candidates.RequestCandidates
    index: int


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
    error: str = ""
    budget_exceeded: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A node's devices, and for each request of the workload (in order) an offer a way."""

    remaining: counters.RemainingCounters
    devices: Sequence[candidates.NodeDevice]
    candidates: Sequence[Sequence[candidates.RequestCandidates]]
    claim_indexes: Sequence[int]
    """The place of each request's claim in the workload."""
    match_constraints: Sequence[match_attribute.MatchAttribute]
    extra_constraints: Sequence[tied.Constraint] = ()

    @property
    def constraints(self) -> Sequence[tied.Constraint]:
        """The constraints of the API, and what else ties devices together."""
        return (*self.match_constraints, *self.extra_constraints)


class _SearchError(Exception):
    """The reference ends the search on the node here."""


class _BudgetExceeded(Exception):
    pass


@dataclass(slots=True)
class _SubrequestChoice:
    """The choice of a way for a request."""

    request: int
    next: int = 0


@dataclass(slots=True)
class _DeviceChoice:
    """The choice of the next device of a way: `number` of them are chosen before it."""

    request: int
    candidates: candidates.RequestCandidates
    number: int
    next: int
    index: int | None = None
    equivalence_class: Hashable | None = None
    failed: set[Hashable] = field(default_factory=set)


def solve(problem: Problem, budget: int | None = None) -> Solved | Unsolved:
    """The first solution, or that there is none; at most `budget` devices are tried."""
    for tie in problem.constraints:
        tie.clear()
    return _Search(problem, budget).run()


class _Search:
    def __init__(self, problem: Problem, budget: int | None) -> None:
        self._problem = problem
        self._budget = budget
        self._constraints = problem.constraints
        self._tracker = counters.CounterTracker(problem.remaining, problem.devices)
        self._bounds = feasibility.FeasibilityBounds(
            problem.devices, problem.match_constraints, self._tracker
        )
        self._equivalence = device_classes.DeviceEquivalence(
            problem.devices, problem.candidates, self._constraints, self._tracker
        )
        self._stack: list[_SubrequestChoice | _DeviceChoice] = []
        self._claim_counts = [0] * (max(problem.claim_indexes, default=-1) + 1)
        self._steps = 0

    def run(self) -> Solved | Unsolved:
        try:
            found = self._run()
        except _SearchError as error:
            return Unsolved(self._steps, error=str(error))
        except _BudgetExceeded:
            return Unsolved(self._steps, budget_exceeded=True)
        if found is None:
            return Unsolved(self._steps)
        return Solved(found, self._steps)

    def _run(self) -> tuple[Choice, ...] | None:
        if not self._problem.candidates:
            return ()
        alone = len(self._problem.candidates) == 1 and all(
            offer.count == 1 for offer in self._problem.candidates[0]
        )
        if not alone and not self._is_feasible(0, None):
            return None
        self._stack.append(_SubrequestChoice(0))
        while self._stack:
            top = self._stack[-1]
            follow = (
                self._next_subrequest(top)
                if isinstance(top, _SubrequestChoice)
                else self._next_device(top)
            )
            if follow is None:
                self._stack.pop()
            elif isinstance(follow, _SubrequestChoice) and follow.request == len(
                self._problem.candidates
            ):
                return tuple(self._choices())
            else:
                self._stack.append(follow)
        return None

    def _choices(self) -> Iterator[Choice]:
        for one in self._stack:
            if isinstance(one, _DeviceChoice) and one.index is not None:
                yield Choice(one.request, one.candidates, one.index)

    def _next_subrequest(self, at: _SubrequestChoice) -> _DeviceChoice | None:
        """The next way that may do, with the choice of its first device."""
        ways = self._problem.candidates[at.request]
        had = self._claim_counts[self._problem.claim_indexes[at.request]]
        while at.next < len(ways):
            offer = ways[at.next]
            at.next += 1
            if had + offer.count <= claims.MAX_RESULTS and offer.indexes and not offer.unavailable:
                return _DeviceChoice(at.request, offer, number=0, next=0)
        return None

    def _next_device(self, at: _DeviceChoice) -> _SubrequestChoice | _DeviceChoice | None:
        """The next device that may do, with the choice that follows it."""
        self._undo(at)
        places = at.candidates.indexes
        last = at.number + 1 if at.candidates.subrequest.request.everything else len(places)
        at.next = (
            max(at.next, at.number) if at.candidates.subrequest.request.everything else at.next
        )
        while at.next < last:
            place = places[at.next]
            at.next += 1
            if self._try_device(at, place):
                if at.number + 1 < at.candidates.count:
                    return _DeviceChoice(at.request, at.candidates, at.number + 1, at.next)
                return _SubrequestChoice(at.request + 1)
        return None

    def _try_device(self, at: _DeviceChoice, place: int) -> bool:
        """Take a device, unless it, or what it leaves, cannot do."""
        claim = self._problem.claim_indexes[at.request]
        if place in at.candidates.selector_errors:
            if self._tracker.is_used(place):
                return False
            raise _SearchError(
                f"{self._problem.devices[place].id.device}: {at.candidates.selector_errors[place]}"
            )
        kind = self._equivalence.equivalence_class(place) if at.failed else None
        if kind is not None and kind in at.failed:
            return False
        self._steps += 1
        if self._budget is not None and self._steps > self._budget:
            raise _BudgetExceeded
        if not self._tracker.try_allocate(place, at.candidates, claim):
            return False
        ties = [
            one for one in self._constraints if one.covers(claim, at.candidates.subrequest.name)
        ]
        refusing = next((tie for tie in ties if not tie.accepts(place)), None)
        if refusing is not None:
            self._tracker.release(place, at.candidates)
            if (
                at.candidates.subrequest.request.everything
                and refusing in self._problem.match_constraints
            ):
                name = self._problem.devices[place].id.device
                raise _SearchError(f"a constraint keeps {name} from All, which needs it")
            return False
        for tie in ties:
            tie.add(place)
        self._claim_counts[claim] += 1
        at.index = place
        if not self._is_feasible(at.request + 1, at):
            self._undo(at)
            return False
        return True

    def _undo(self, at: _DeviceChoice) -> None:
        """Give the chosen device back, and remember that its like will not do either."""
        if at.index is None:
            return
        claim = self._problem.claim_indexes[at.request]
        for tie in self._constraints:
            if tie.covers(claim, at.candidates.subrequest.name):
                tie.remove_last()
        self._tracker.release(at.index, at.candidates)
        self._claim_counts[claim] -= 1
        kind = self._equivalence.equivalence_class(at.index)
        at.index = None
        if kind is not None:
            at.failed.add(kind)

    def _is_feasible(self, want: int, at: _DeviceChoice | None) -> bool:
        """Whether the rest of a way, and every request from `want` on, may still be had."""
        claim_of, made = self._problem.claim_indexes, self._problem.candidates
        demands: list[feasibility.Demand] = []
        if at is not None and at.number + 1 < at.candidates.count:
            rest = feasibility.Option(at.candidates, at.candidates.count - at.number - 1, at.next)
            demands.append(feasibility.Demand(claim_of[at.request], (rest,)))
        for later in range(want, len(made)):
            options = tuple(
                feasibility.Option(offer, offer.count)
                for offer in made[later]
                if offer.indexes and not offer.unavailable
            )
            demands.append(feasibility.Demand(claim_of[later], options))
        return not demands or self._bounds.is_feasible(demands)
