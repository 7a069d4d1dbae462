"""Search for an assignment of devices to requests on one node. Pure; with a step budget.

Depth first, over claims, requests, alternatives and devices in order of preference, so that the
first solution is the one that kube-scheduler's allocator finds: what is skipped, or cut off early,
leads to no solution. Without recursion: a workload may request hundreds of devices.
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
    """A device for a request: the index of the request, its candidates, the device's index."""

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
    """No solution. `error` is the error that ended the search.

    With `budget_exceeded` the step budget ended first: there may be a solution.
    """

    steps: int
    error: str = ""
    budget_exceeded: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Devices of a node, and for each request (in order) its candidates by subrequest."""

    remaining: counters.RemainingCounters
    devices: Sequence[candidates.NodeDevice]
    candidates: Sequence[Sequence[candidates.RequestCandidates]]
    claim_indexes: Sequence[int]
    """Index of each request's claim in the workload."""
    match_constraints: Sequence[match_attribute.MatchAttribute]
    extra_constraints: Sequence[tied.Constraint] = ()

    @property
    def constraints(self) -> Sequence[tied.Constraint]:
        """Constraints of the API, and further ones between devices."""
        return (*self.match_constraints, *self.extra_constraints)


class _SearchError(Exception):
    """The reference ends the search on the node here."""


class _BudgetExceeded(Exception):
    pass


@dataclass(slots=True)
class _SubrequestChoice:
    """Choice of a subrequest for a request."""

    request: int
    next: int = 0


@dataclass(slots=True)
class _DeviceChoice:
    """Choice of the next device of a subrequest: `number` of them are chosen before it."""

    request: int
    candidates: candidates.RequestCandidates
    number: int
    next: int
    index: int | None = None
    equivalence_class: Hashable | None = None
    failed: set[Hashable] = field(default_factory=set)


def solve(problem: Problem, budget: int | None = None) -> Solved | Unsolved:
    """Return the first solution, or that there is none; at most `budget` devices are tried."""
    for constraint in problem.constraints:
        constraint.clear()
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
            choices = self._run()
        except _SearchError as error:
            return Unsolved(self._steps, error=str(error))
        except _BudgetExceeded:
            return Unsolved(self._steps, budget_exceeded=True)
        if choices is None:
            return Unsolved(self._steps)
        return Solved(choices, self._steps)

    def _run(self) -> tuple[Choice, ...] | None:
        if not self._problem.candidates:
            return ()
        alone = len(self._problem.candidates) == 1 and all(
            options.count == 1 for options in self._problem.candidates[0]
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
        for choice in self._stack:
            if isinstance(choice, _DeviceChoice) and choice.index is not None:
                yield Choice(choice.request, choice.candidates, choice.index)

    def _next_subrequest(self, state: _SubrequestChoice) -> _DeviceChoice | None:
        """Return the next viable subrequest, with the choice of its first device."""
        subrequests = self._problem.candidates[state.request]
        allocated = self._claim_counts[self._problem.claim_indexes[state.request]]
        while state.next < len(subrequests):
            options = subrequests[state.next]
            state.next += 1
            if (
                allocated + options.count <= claims.MAX_RESULTS
                and options.indexes
                and not options.unavailable
            ):
                return _DeviceChoice(state.request, options, number=0, next=0)
        return None

    def _next_device(self, state: _DeviceChoice) -> _SubrequestChoice | _DeviceChoice | None:
        """Return the choice that follows the next viable device."""
        self._undo(state)
        places = state.candidates.indexes
        last = state.number + 1 if state.candidates.subrequest.request.all_devices else len(places)
        state.next = (
            max(state.next, state.number)
            if state.candidates.subrequest.request.all_devices
            else state.next
        )
        while state.next < last:
            index = places[state.next]
            state.next += 1
            if self._try_device(state, index):
                if state.number + 1 < state.candidates.count:
                    return _DeviceChoice(
                        state.request, state.candidates, state.number + 1, state.next
                    )
                return _SubrequestChoice(state.request + 1)
        return None

    def _try_device(self, state: _DeviceChoice, index: int) -> bool:
        """Allocate a device, unless it, or what it leaves, is infeasible."""
        claim = self._problem.claim_indexes[state.request]
        if index in state.candidates.selector_errors:
            if self._tracker.is_used(index):
                return False
            name = self._problem.devices[index].id.device
            raise _SearchError(f"{name}: {state.candidates.selector_errors[index]}")
        device_class = self._equivalence.equivalence_class(index) if state.failed else None
        if device_class is not None and device_class in state.failed:
            return False
        self._steps += 1
        if self._budget is not None and self._steps > self._budget:
            raise _BudgetExceeded
        if not self._tracker.try_allocate(index, state.candidates, claim):
            return False
        active = [
            constraint
            for constraint in self._constraints
            if constraint.covers(claim, state.candidates.subrequest.name)
        ]
        rejecting = next(
            (constraint for constraint in active if not constraint.accepts(index)), None
        )
        if rejecting is not None:
            self._tracker.release(index, state.candidates)
            if (
                state.candidates.subrequest.request.all_devices
                and rejecting in self._problem.match_constraints
            ):
                name = self._problem.devices[index].id.device
                raise _SearchError(f"a constraint keeps {name} from All, which needs it")
            return False
        for constraint in active:
            constraint.add(index)
        self._claim_counts[claim] += 1
        state.index = index
        if not self._is_feasible(state.request + 1, state):
            self._undo(state)
            return False
        return True

    def _undo(self, state: _DeviceChoice) -> None:
        """Release the chosen device, and record its equivalence class as failed."""
        if state.index is None:
            return
        claim = self._problem.claim_indexes[state.request]
        for constraint in self._constraints:
            if constraint.covers(claim, state.candidates.subrequest.name):
                constraint.remove_last()
        self._tracker.release(state.index, state.candidates)
        self._claim_counts[claim] -= 1
        device_class = self._equivalence.equivalence_class(state.index)
        state.index = None
        if device_class is not None:
            state.failed.add(device_class)

    def _is_feasible(self, request: int, state: _DeviceChoice | None) -> bool:
        """Return whether the rest of a subrequest, and every later request, may still be served."""
        claim_of, all_candidates = self._problem.claim_indexes, self._problem.candidates
        demands: list[feasibility.Demand] = []
        if state is not None and state.number + 1 < state.candidates.count:
            rest = feasibility.Option(
                state.candidates, state.candidates.count - state.number - 1, state.next
            )
            demands.append(feasibility.Demand(claim_of[state.request], (rest,)))
        for later in range(request, len(all_candidates)):
            options = tuple(
                feasibility.Option(alternative, alternative.count)
                for alternative in all_candidates[later]
                if alternative.indexes and not alternative.unavailable
            )
            demands.append(feasibility.Demand(claim_of[later], options))
        return not demands or self._bounds.is_feasible(demands)
