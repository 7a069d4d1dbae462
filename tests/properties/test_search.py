"""The search of one node, on random small worlds: it is plain trial and error, but shorter."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.controller.allocation import allocate, offers, outcome, search
from tests import allocating, worlds
from tests.properties import drawing

Pick = tuple[int, offers.Offer, int]
Picks = tuple[tuple[int, str, int], ...]
"""Of each device its request's place, the way, and its own place."""


def plainly(problem: search.Problem) -> Picks | None:
    """The first solution, by trying everything in the order of preference."""
    for picks in every(problem, 0):
        if right(problem, picks):
            return tuple((want, offer.way.name, place) for want, offer, place in picks)
    return None


def every(problem: search.Problem, want: int) -> Iterator[tuple[Pick, ...]]:
    if want == len(problem.offers):
        yield ()
        return
    mine = (one for offer in problem.offers[want] for one in answers(want, offer))
    for one in mine:
        if right(problem, one):
            yield from ((*one, *rest) for rest in every(problem, want + 1))


def answers(want: int, offer: offers.Offer) -> Iterator[tuple[Pick, ...]]:
    """Every set of devices of a way, the preferred ones first."""
    if offer.places and not offer.barred:
        for places in combinations(offer.places, offer.count):
            yield tuple((want, offer, place) for place in places)


def right(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    claims = [problem.claim_of[want] for want, _, _ in picks]
    return (
        apart(problem, picks)
        and counters_last(problem, picks)
        and capacities_last(problem, picks)
        and all(agree(problem, picks, number) for number in set(claims))
    )


def apart(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    """A device that is not shared has one user, but for administrators of other claims."""
    users: dict[int, list[int]] = {}
    for want, offer, place in picks:
        mine, others = problem.claim_of[want], users.setdefault(place, [])
        beside = offer.way.request.admin_access and mine not in others
        if others and not beside and not problem.spots[place].device.allow_multiple:
            return False
        others.append(mine)
    return True


def counters_last(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    """A shared device draws once, however many have it."""
    drawn: dict[tuple[object, object], int] = {}
    paid: set[int] = set()
    for place in [place for _, _, place in picks]:
        spot = problem.spots[place]
        shared = spot.device.allow_multiple
        if shared and (place in paid or any(one.result.share_id for one in spot.holders)):
            continue
        paid.add(place)
        left = problem.view.left(spot.pool)
        for key, amount in draws(spot):
            drawn[id(spot.pool), key] = drawn.get((id(spot.pool), key), 0) + amount
            if drawn[id(spot.pool), key] > left[key] or min(left.values()) < 0:
                return False
    return True


def draws(spot: offers.Spot) -> Iterator[tuple[tuple[str, str], int]]:
    for use in spot.device.consumes:
        yield from (((use.set, name), amount.nanos) for name, amount in use.counters.items())


def capacities_last(problem: search.Problem, picks: Sequence[Pick]) -> bool:
    taken: dict[tuple[int, str], int] = {}
    for _, offer, place in picks:
        spot = problem.spots[place]
        for name, amount in offer.takes.get(place, {}).items():
            before = sum(
                one.result.consumed[name].nanos for one in spot.holders if one.result.share_id
            )
            taken[place, name] = taken.get((place, name), before) + amount.nanos
            if taken[place, name] > spot.device.capacity[name].value.nanos:
                return False
    return True


def agree(problem: search.Problem, picks: Sequence[Pick], claim: int) -> bool:
    for bond in problem.bonds:
        bound = [
            bond.values[place]
            for want, offer, place in picks
            if problem.claim_of[want] == claim and bond.covers(claim, offer.way.name)
        ]
        there = [one for one in bound if one is not None]
        if len(there) < len(bound):
            return False
        if bond.rule.distinct and any(a & b for a, b in combinations(there, 2)):
            return False
        if there and not bond.rule.distinct and not frozenset.intersection(*there):
            return False
    return True


@st.composite
def problems(draw: st.DrawFn) -> search.Problem:
    """A node's search, some devices in use."""
    slices = draw(drawing.published())
    view = drawing.fresh(slices)
    earlier = draw(drawing.workloads(1))
    answer = allocate.allocate(view, earlier, worlds.DECIDING)
    if isinstance(answer, outcome.Placement):
        drawing.put(view, drawing.written(view, earlier, answer))
    return allocating.problem(view, *draw(drawing.workloads()).open)


def chosen(found: search.Solved) -> Picks:
    return tuple((one.want, one.offer.way.name, one.place) for one in found.choices)


@settings(max_examples=200)
@given(problems())
def test_it_finds_what_trying_everything_finds_first(problem: search.Problem) -> None:
    found = search.solve(problem)
    plain = plainly(problem)
    if isinstance(found, search.Solved):
        assert chosen(found) == plain
    elif not found.broken:
        assert plain is None


@settings(max_examples=100)
@given(problems(), st.integers(0, 12))
def test_a_budget_ends_a_search_or_changes_nothing(problem: search.Problem, budget: int) -> None:
    whole = search.solve(problem)
    clear(problem)
    found = search.solve(problem, budget)
    if isinstance(found, search.Unsolved) and found.given_up:
        assert whole.steps > budget
    else:
        assert found == whole


def clear(problem: search.Problem) -> None:
    for tie in problem.ties:
        tie.clear()
