"""The search of one node, on random small worlds: it is plain trial and error, but shorter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.scheduling.allocator import candidates, dra_allocator, search
from driver.scheduling.allocator import types as allocator_types
from tests.properties import drawing
from tests.support import allocation, snapshots

Pick = tuple[int, candidates.RequestCandidates, int]
Picks = tuple[tuple[int, str, int], ...]
"""Of each device its request's place, the way, and its own place."""


def plainly(problem: search.Problem) -> Picks | None:
    """The first solution, by trying everything in the order of preference."""
    results = next(every(problem, ()), None)
    if results is None:
        return None
    return tuple((want, offer.subrequest.name, index) for want, offer, index in results)


def every(problem: search.Problem, previous: tuple[Pick, ...]) -> Iterator[tuple[Pick, ...]]:
    """Every solution that begins so; what is wrong already is not gone on with."""
    want = previous[-1][0] + 1 if previous else 0
    if want == len(problem.candidates):
        yield previous
        return
    mine = (answer for offer in problem.candidates[want] for answer in answers(want, offer))
    for item in mine:
        if right(problem, (*previous, *item)):
            yield from every(problem, (*previous, *item))


def answers(want: int, offer: candidates.RequestCandidates) -> Iterator[tuple[Pick, ...]]:
    """Every set of devices of a way, the preferred ones first."""
    if offer.indexes and not offer.unavailable:
        for places in combinations(offer.indexes, offer.count):
            yield tuple((want, offer, index) for index in places)


def right(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    claims = [problem.claim_indexes[want] for want, _, _ in picks]
    return (
        apart(problem, picks)
        and counters_last(problem, picks)
        and capacities_last(problem, picks)
        and all(agree(problem, picks, number) for number in set(claims))
    )


def is_admin(offer: candidates.RequestCandidates) -> bool:
    return offer.subrequest.request.admin_access


def apart(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    """A device that is not shared has one user, and administrators of other claims beside it."""
    users: dict[int, list[tuple[int, bool]]] = {}
    for want, offer, index in picks:
        mine, admin, others = (
            problem.claim_indexes[want],
            is_admin(offer),
            users.setdefault(index, []),
        )
        barred = any(
            claim == mine or not (admin or is_other_admin) for claim, is_other_admin in others
        )
        if barred and not problem.devices[index].device.allow_multiple:
            return False
        others.append((mine, admin))
    return True


def counters_last(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    """A shared device draws once, however many have it; administrators draw nothing."""
    drawn: dict[tuple[object, object], int] = {}
    paid: set[int] = set()
    for index in [position for _, offer, position in picks if not is_admin(offer)]:
        spot = problem.devices[index]
        shared = spot.device.allow_multiple
        if shared and (index in paid or any(holder.result.share_id for holder in spot.holders)):
            continue
        paid.add(index)
        left = problem.remaining.remaining_counters(spot.pool)
        for key, amount in draws(spot):
            drawn[id(spot.pool), key] = drawn.get((id(spot.pool), key), 0) + amount
            if drawn[id(spot.pool), key] > left[key] or min(left.values()) < 0:
                return False
    return True


def draws(spot: candidates.NodeDevice) -> Iterator[tuple[tuple[str, str], int]]:
    for use in spot.device.consumes:
        yield from (((use.set, name), amount.nanos) for name, amount in use.counters.items())


def capacities_last(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    taken: dict[tuple[int, str], int] = {}
    for _, offer, index in picks:
        if is_admin(offer):
            continue
        spot = problem.devices[index]
        for name, amount in offer.consumption.get(index, {}).items():
            previous = sum(
                holder.result.consumed[name].nanos
                for holder in spot.holders
                if holder.result.share_id
            )
            taken[index, name] = taken.get((index, name), previous) + amount.nanos
            if taken[index, name] > spot.device.capacity[name].value.nanos:
                return False
    return True


def agree(problem: search.Problem, picks: Sequence[Pick], claim: int) -> bool:
    for bond in problem.match_constraints:
        bound = [
            bond.values[index]
            for want, offer, index in picks
            if problem.claim_indexes[want] == claim and bond.covers(claim, offer.subrequest.name)
        ]
        keys = [keys_value for keys_value in bound if keys_value is not None]
        if len(keys) < len(bound):
            return False
        if bond.constraint.distinct and any(a & b for a, b in combinations(keys, 2)):
            return False
        if keys and not bond.constraint.distinct and not frozenset.intersection(*keys):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Question:
    """Published devices, earlier claims, and the request."""

    published: list[drawing.Raw]
    earlier: allocator_types.Workload
    asking: allocator_types.Workload

    def problem(self) -> search.Problem:
        """A node's search, some devices in use."""
        view = drawing.fresh(self.published)
        answer = dra_allocator.allocate(view, self.earlier, snapshots.DECIDING)
        if isinstance(answer, allocator_types.Placement):
            drawing.put(view, drawing.written(view, self.earlier, answer))
        return allocation.problem(view, *self.asking.open_claims)


questions = st.builds(Question, drawing.published(), drawing.workloads(1), drawing.workloads())


def chosen(solved: search.Solved) -> Picks:
    return tuple(
        (choice.request, choice.candidates.subrequest.name, choice.index)
        for choice in solved.choices
    )


@settings(max_examples=200)
@given(questions)
def test_it_finds_what_trying_everything_finds_first(question: Question) -> None:
    solved = search.solve(question.problem())
    plain = plainly(question.problem())
    if isinstance(solved, search.Solved):
        assert chosen(solved) == plain
    elif not solved.error:
        assert plain is None


@settings(max_examples=100)
@given(questions, st.integers(0, 12))
def test_a_budget_ends_a_search_or_changes_nothing(question: Question, budget: int) -> None:
    whole = search.solve(question.problem())
    solved = search.solve(question.problem(), budget)
    if isinstance(solved, search.Unsolved) and solved.budget_exceeded:
        assert whole.steps > budget
    elif isinstance(solved, search.Solved):
        assert isinstance(whole, search.Solved)
        assert (chosen(solved), solved.steps) == (chosen(whole), whole.steps)
    else:
        assert solved == whole
