"""Queues: fair shares against a reference that tries every case, the order, the ledger."""

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.resources import queues
from driver.scheduling.queues import fair_share, order, tree
from driver.scheduling.queues import resources as queue_resources
from tests.support.builders.queues import NOON, a_workload, an_engine, named, queue, some

GPUS = 16
FLEET = some(GPUS)
NONE, ALL = Fraction(0), Fraction(1)
_FEWEST, _MOST = 1, 7
_BRANCHES = 3
counts = st.one_of(st.none(), st.integers(0, 12))


@st.composite
def forests(draw: st.DrawFn) -> list[queues.Queue]:
    """Trees of a few queues, by number; a parent never has more than three children."""
    made: list[queues.Queue] = []
    children: dict[str, int] = {}
    for number in range(draw(st.integers(_FEWEST, _MOST))):
        open_ = ["", *(one.name for one in made)]
        parent = draw(st.sampled_from([n for n in open_ if children.get(n, 0) < _BRANCHES]))
        children[parent] = children.get(parent, 0) + 1
        due = draw(counts)
        more = draw(counts)
        made.append(
            queue(
                f"q{number}",
                parent,
                weight=draw(st.integers(1, 4)),
                deserved=due,
                limit=None if more is None else more + (due or 0),
                borrowing=draw(st.booleans()),
            )
        )
    return made


@st.composite
def cases(draw: st.DrawFn) -> tuple[tree.QueueTree, dict[str, Fraction]]:
    """A tree, and what its leaves want, as shares of the fleet."""
    made = tree.build_tree(draw(forests()))
    wanted = {leaf: Fraction(draw(st.integers(0, 40)), 2 * GPUS) for leaf in made.leaves}
    return made, wanted


def among(
    names: list[str],
    weights: Mapping[str, Fraction],
    room: Mapping[str, Fraction],
    amount: Fraction,
) -> dict[str, Fraction]:
    """Weighted max-min of siblings: of every choice of who is full, the one that is true."""
    if sum((room[name] for name in names if weights[name]), NONE) <= amount:
        return {name: room[name] if weights[name] else NONE for name in names}
    for full in _subsets(names):
        rest = [name for name in names if name not in full and weights[name]]
        left = amount - sum((room[name] for name in full), NONE)
        if not rest or left < 0:
            continue
        level = left / sum(weights[name] for name in rest)
        holds = all(weights[name] and room[name] <= weights[name] * level for name in full)
        if holds and all(weights[name] * level <= room[name] for name in rest):
            return {name: room[name] if name in full else weights[name] * level for name in names}
    raise AssertionError((names, weights, room, amount))


def _subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from itertools.combinations(names, size)


def by_trying(made: tree.QueueTree, wanted: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Fair shares from the top down."""

    def share(of: queues.Amounts) -> Fraction | None:
        return None if of.gpus is None else Fraction(of.gpus, 1000 * GPUS)

    def limit(of: queues.Queue) -> Fraction:
        bounds = [share(of.limit), None if of.borrowing else share(of.deserved)]
        return min([Fraction(99), *(one for one in bounds if one is not None)])

    def due(name: str) -> Fraction:
        below = sum((due(child) for child in made.children.get(name, ())), NONE)
        return max(share(made.accepted[name].deserved) or NONE, below)

    def most(name: str) -> Fraction:
        below = sum((most(child) for child in made.children.get(name, ())), NONE)
        return min(wanted.get(name, NONE) + below, limit(made.accepted[name]))

    found: dict[str, Fraction] = {}

    def give(parent: str | None, amount: Fraction) -> None:
        names = [*made.children.get(parent, ())]
        floor = {name: min(most(name), due(name)) for name in names}
        first = among(names, {name: due(name) for name in names}, floor, amount)
        left = amount - sum(first.values(), NONE)
        weights = {name: Fraction(made.accepted[name].weight) for name in names}
        rooms = {name: most(name) - first[name] for name in names}
        more = among(names, weights, rooms, left)
        for name in names:
            found[name] = first[name] + more[name]
            give(name, found[name])

    give(None, ALL)
    return found


@settings(max_examples=200)
@given(cases())
def test_fair_shares_are_those_that_trying_every_case_finds(
    case: tuple[tree.QueueTree, dict[str, Fraction]],
) -> None:
    made, wanted = case
    assert fair_share.fair_shares(made, FLEET, wanted) == by_trying(made, wanted)


@settings(max_examples=200)
@given(cases())
def test_shares_are_within_the_fleet_demand_and_limits_and_no_less_than_deserved(
    case: tuple[tree.QueueTree, dict[str, Fraction]],
) -> None:
    made, wanted = case
    found = fair_share.fair_shares(made, FLEET, wanted)
    caps = fair_share.limit_shares(made, FLEET)
    floors = fair_share.deserved_shares(made, FLEET)
    tops = made.children[None]
    assert sum(found[name] for name in tops) <= ALL
    feasible = sum(floors[name] for name in tops) <= ALL
    for name, share in found.items():
        below = [found[child] for child in made.children.get(name, ())]
        assert not below or sum(below) == share
        assert share <= caps.get(name, share)
        if not below:
            assert share <= wanted.get(name, NONE)
            path = made.path(name)
            reach = min([wanted.get(name, NONE), *(caps[n] for n in path if n in caps)])
            assert not feasible or share >= min(reach, floors[name])


@settings(max_examples=100)
@given(cases())
def test_shares_of_whole_gpus_are_the_same_by_amounts(
    case: tuple[tree.QueueTree, dict[str, Fraction]],
) -> None:
    made, wanted = case
    asked = {name: some(float(share * GPUS)) for name, share in wanted.items()}
    assert fair_share.fair_shares_of_amounts(made, FLEET, asked) == fair_share.fair_shares(
        made, FLEET, wanted
    )


@settings(max_examples=100)
@given(cases(), st.data())
def test_of_two_siblings_who_used_more_in_the_past_has_no_more_now(
    case: tuple[tree.QueueTree, dict[str, Fraction]], data: st.DataObject
) -> None:
    made, wanted = case
    past = {name: Fraction(data.draw(st.integers(0, 16)), GPUS) for name in made.accepted if name}
    found = fair_share.fair_shares(made, FLEET, wanted, past)
    caps, floors = fair_share.limit_shares(made, FLEET), fair_share.deserved_shares(made, FLEET)
    assert sum(found[name] for name in made.children[None]) <= ALL
    for one, other in itertools.permutations(made.leaves, 2):
        mine, theirs = made.accepted[one], made.accepted[other]
        alike = mine.weight == theirs.weight and floors[one] == floors[other] == NONE
        alike = alike and mine.parent == theirs.parent and not {one, other} & caps.keys()
        alike = alike and wanted[one] == wanted[other] and one in past and other in past
        if alike and past[one] >= past[other]:
            assert found[one] <= found[other]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[queues.Queue], list[order.PendingEntry]]:
    found = draw(forests())
    leaves = tree.build_tree(found).leaves
    waiting = [
        a_workload(
            f"w{number}",
            draw(st.sampled_from(leaves)),
            draw(st.integers(1, 3)),
            since=draw(st.sampled_from([-9000, -4000, -60, 0])),
            priority=draw(st.integers(0, 2)),
        )
        for number in range(draw(st.integers(0, 12)))
    ]
    return found, waiting


def given_out(
    found: list[queues.Queue], waiting: list[order.PendingEntry], takes: set[str]
) -> list[str]:
    """The order, when those that are named take what they ask on their turn."""
    made = an_engine(GPUS, *found)
    served = []
    for one in made.schedule_order(waiting, NOON):
        served.append(str(one.key))
        if one.key in takes:
            made.charge(one.key, one.queue, one.requested)
    return served


@settings(max_examples=100)
@given(crowds(), st.data())
def test_the_order_is_total_and_depends_on_nothing_but_what_waits(
    crowd: tuple[list[queues.Queue], list[order.PendingEntry]], data: st.DataObject
) -> None:
    found, waiting = crowd
    names = [str(one.key) for one in waiting]
    takes = set(data.draw(st.lists(st.sampled_from(names), unique=True))) if names else set()
    one = given_out(found, waiting, takes)
    assert sorted(one) == sorted(names)
    shuffled = data.draw(st.permutations(waiting))
    assert given_out(data.draw(st.permutations(found)), shuffled, takes) == one


@settings(max_examples=50)
@given(crowds())
def test_the_order_if_each_got_what_it_asks_is_told_without_a_trace(
    crowd: tuple[list[queues.Queue], list[order.PendingEntry]],
) -> None:
    found, waiting = crowd
    made = an_engine(GPUS, *found)
    for _ in range(2):
        asked = [str(one.key) for one in made.hypothetical_order(waiting, NOON)]
        assert asked == given_out(found, waiting, {*asked})
    assert all(made.usage(name) == queue_resources.ZERO for name in made.tree.accepted)
    assert all(made.last_starvation_start(name) is None for name in made.tree.accepted)


@settings(max_examples=100)
@given(crowds(), st.data())
def test_the_next_is_who_would_be_first_of_a_line_made_anew(
    crowd: tuple[list[queues.Queue], list[order.PendingEntry]], data: st.DataObject
) -> None:
    found, waiting = crowd
    kept, fresh = an_engine(GPUS, *found), an_engine(GPUS, *found)
    line = kept.schedule_order(waiting, NOON)
    left = [*waiting]
    while left:
        one = next(line)
        again = next(fresh.schedule_order(left, NOON))
        assert one == again
        left.remove(one)
        for made in (kept, fresh):
            made.charge(one.key, one.queue, one.requested)
        if data.draw(st.booleans()):
            for made in (kept, fresh):
                made.charge(one.key, one.queue, None)
    assert next(line, None) is None


@settings(max_examples=100)
@given(forests(), st.data())
def test_what_queues_have_is_the_sum_of_their_claims_after_any_sequence(
    found: list[queues.Queue], data: st.DataObject
) -> None:
    made = an_engine(GPUS, *found)
    charges: dict[int, tuple[str, queue_resources.Amounts]] = {}
    names = ["", *(one.name for one in found)]
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["charge", "charge", "free", "queue"])):
            case "charge":
                claim, leaf = data.draw(st.integers(0, 3)), data.draw(st.sampled_from(names))
                charges[claim] = leaf, some(data.draw(st.integers(0, 4)), "T4")
                made.charge(claim, *charges[claim])
            case "free":
                claim = data.draw(st.integers(0, 3))
                charges.pop(claim, None)
                made.charge(claim, "", None)
            case _:
                one = data.draw(st.sampled_from(found))
                gone = data.draw(st.booleans())
                made.set_queue(one.name, None if gone else one)
    for name in made.tree.accepted:
        mine = [taken for leaf, taken in charges.values() if name in made.tree.path(leaf)]
        assert made.usage(name) == queue_resources.sum_amounts(mine)


@settings(max_examples=100)
@given(forests(), st.data())
def test_nobody_exceeds_a_limit_by_what_may_be_placed(
    found: list[queues.Queue], data: st.DataObject
) -> None:
    made = an_engine(GPUS, *found)
    for number in range(data.draw(st.integers(0, 20))):
        leaf = data.draw(st.sampled_from(made.tree.leaves))
        asked = some(data.draw(st.integers(1, 8)) / 2)
        if made.exceeded_limit(leaf, asked) is None:
            made.charge(number, leaf, asked)
    for name, one in made.tree.accepted.items():
        bounds = [one.limit.gpus, None if one.borrowing else one.deserved.gpus]
        assert all(made.usage(name).gpus <= most for most in bounds if most is not None)


@settings(max_examples=100)
@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=5))
def test_an_omitted_queue_leaves_the_tree_as_if_it_did_not_exist(
    drawn: list[tuple[int | None, int | None]],
) -> None:
    found = [
        queue(f"q{number}", f"q{parent}" if parent is not None else "", deserved=due)
        for number, (parent, due) in enumerate(drawn)
    ]
    made = tree.build_tree(found)
    again = tree.build_tree([one for one in found if one.name not in made.faults])
    assert not again.faults
    assert (again.accepted, again.children, again.deserved) == (
        made.accepted,
        made.children,
        made.deserved,
    )
    assert made.accepted.keys() | made.faults.keys() == {"", *(one.name for one in found)}


def test_a_reference_that_tries_every_case_knows_who_is_full() -> None:
    weights = {"a": Fraction(1), "b": Fraction(3)}
    found = among(["a", "b"], weights, {"a": ALL, "b": Fraction(1, 4)}, ALL)
    assert found == {"a": Fraction(3, 4), "b": Fraction(1, 4)}
    assert named(1).gpus == 1000
