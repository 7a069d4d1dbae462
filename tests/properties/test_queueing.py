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
    created: list[queues.Queue] = []
    children: dict[str, int] = {}
    for number in range(draw(st.integers(_FEWEST, _MOST))):
        open_ = ["", *(item.name for item in created)]
        parent = draw(st.sampled_from([n for n in open_ if children.get(n, 0) < _BRANCHES]))
        children[parent] = children.get(parent, 0) + 1
        due = draw(counts)
        more = draw(counts)
        created.append(
            queue(
                f"q{number}",
                parent,
                weight=draw(st.integers(1, 4)),
                deserved=due,
                limit=None if more is None else more + (due or 0),
                borrowing=draw(st.booleans()),
            )
        )
    return created


@st.composite
def cases(draw: st.DrawFn) -> tuple[tree.QueueTree, dict[str, Fraction]]:
    """A tree, and what its leaves want, as shares of the fleet."""
    queue_tree = tree.build_tree(draw(forests()))
    expected = {leaf: Fraction(draw(st.integers(0, 40)), 2 * GPUS) for leaf in queue_tree.leaves}
    return queue_tree, expected


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


def by_trying(queue_tree: tree.QueueTree, expected: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Fair shares from the top down."""

    def share(amounts: queues.Amounts) -> Fraction | None:
        return None if amounts.gpus is None else Fraction(amounts.gpus, 1000 * GPUS)

    def limit(source: queues.Queue) -> Fraction:
        bounds = [share(source.limit), None if source.borrowing else share(source.deserved)]
        return min([Fraction(99), *(bound for bound in bounds if bound is not None)])

    def due(name: str) -> Fraction:
        below = sum((due(child) for child in queue_tree.children.get(name, ())), NONE)
        return max(share(queue_tree.accepted[name].deserved) or NONE, below)

    def most(name: str) -> Fraction:
        below = sum((most(child) for child in queue_tree.children.get(name, ())), NONE)
        return min(expected.get(name, NONE) + below, limit(queue_tree.accepted[name]))

    fractions: dict[str, Fraction] = {}

    def give(parent: str | None, amount: Fraction) -> None:
        names = [*queue_tree.children.get(parent, ())]
        floor = {name: min(most(name), due(name)) for name in names}
        first = among(names, {name: due(name) for name in names}, floor, amount)
        left = amount - sum(first.values(), NONE)
        weights = {name: Fraction(queue_tree.accepted[name].weight) for name in names}
        rooms = {name: most(name) - first[name] for name in names}
        more = among(names, weights, rooms, left)
        for name in names:
            fractions[name] = first[name] + more[name]
            give(name, fractions[name])

    give(None, ALL)
    return fractions


@settings(max_examples=200)
@given(cases())
def test_fair_shares_are_those_that_trying_every_case_finds(
    case: tuple[tree.QueueTree, dict[str, Fraction]],
) -> None:
    queue_tree, expected = case
    assert fair_share.fair_shares(queue_tree, FLEET, expected) == by_trying(queue_tree, expected)


@settings(max_examples=200)
@given(cases())
def test_shares_are_within_the_fleet_demand_and_limits_and_no_less_than_deserved(
    case: tuple[tree.QueueTree, dict[str, Fraction]],
) -> None:
    queue_tree, expected = case
    fractions = fair_share.fair_shares(queue_tree, FLEET, expected)
    caps = fair_share.limit_shares(queue_tree, FLEET)
    floors = fair_share.deserved_shares(queue_tree, FLEET)
    highest = queue_tree.children[None]
    assert sum(fractions[name] for name in highest) <= ALL
    feasible = sum(floors[name] for name in highest) <= ALL
    for name, share in fractions.items():
        below = [fractions[child] for child in queue_tree.children.get(name, ())]
        assert not below or sum(below) == share
        assert share <= caps.get(name, share)
        if not below:
            assert share <= expected.get(name, NONE)
            path = queue_tree.path(name)
            reach = min([expected.get(name, NONE), *(caps[n] for n in path if n in caps)])
            assert not feasible or share >= min(reach, floors[name])


@settings(max_examples=100)
@given(cases())
def test_shares_of_whole_gpus_are_the_same_by_amounts(
    case: tuple[tree.QueueTree, dict[str, Fraction]],
) -> None:
    queue_tree, expected = case
    amounts = {name: some(float(share * GPUS)) for name, share in expected.items()}
    assert fair_share.fair_shares_of_amounts(queue_tree, FLEET, amounts) == fair_share.fair_shares(
        queue_tree, FLEET, expected
    )


@settings(max_examples=100)
@given(cases(), st.data())
def test_the_sibling_with_more_past_usage_gets_no_more_now(
    case: tuple[tree.QueueTree, dict[str, Fraction]], data: st.DataObject
) -> None:
    queue_tree, expected = case
    past = {
        name: Fraction(data.draw(st.integers(0, 16)), GPUS) for name in queue_tree.accepted if name
    }
    fractions = fair_share.fair_shares(queue_tree, FLEET, expected, past)
    caps, floors = (
        fair_share.limit_shares(queue_tree, FLEET),
        fair_share.deserved_shares(queue_tree, FLEET),
    )
    assert sum(fractions[name] for name in queue_tree.children[None]) <= ALL
    for name, other in itertools.permutations(queue_tree.leaves, 2):
        mine, theirs = queue_tree.accepted[name], queue_tree.accepted[other]
        alike = mine.weight == theirs.weight and floors[name] == floors[other] == NONE
        alike = alike and mine.parent == theirs.parent and not {name, other} & caps.keys()
        alike = alike and expected[name] == expected[other] and name in past and other in past
        if alike and past[name] >= past[other]:
            assert fractions[name] <= fractions[other]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[queues.Queue], list[order.PendingEntry]]:
    results = draw(forests())
    leaves = tree.build_tree(results).leaves
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
    return results, waiting


def given_out(
    results: list[queues.Queue], waiting: list[order.PendingEntry], takes: set[str]
) -> list[str]:
    """The order, when those that are named take what they ask on their turn."""
    queue_engine = an_engine(GPUS, *results)
    served = []
    for pending_entry in queue_engine.schedule_order(waiting, NOON):
        served.append(str(pending_entry.key))
        if pending_entry.key in takes:
            queue_engine.charge(pending_entry.key, pending_entry.queue, pending_entry.requested)
    return served


@settings(max_examples=100)
@given(crowds(), st.data())
def test_the_order_is_total_and_depends_on_nothing_but_what_waits(
    crowd: tuple[list[queues.Queue], list[order.PendingEntry]], data: st.DataObject
) -> None:
    results, waiting = crowd
    names = [str(pending_entry.key) for pending_entry in waiting]
    takes = set(data.draw(st.lists(st.sampled_from(names), unique=True))) if names else set()
    texts = given_out(results, waiting, takes)
    assert sorted(texts) == sorted(names)
    shuffled = data.draw(st.permutations(waiting))
    assert given_out(data.draw(st.permutations(results)), shuffled, takes) == texts


@settings(max_examples=50)
@given(crowds())
def test_the_order_if_each_got_what_it_asks_is_told_without_a_trace(
    crowd: tuple[list[queues.Queue], list[order.PendingEntry]],
) -> None:
    results, waiting = crowd
    queue_engine = an_engine(GPUS, *results)
    for _ in range(2):
        requested = [
            str(pending_entry.key)
            for pending_entry in queue_engine.hypothetical_order(waiting, NOON)
        ]
        assert requested == given_out(results, waiting, {*requested})
    assert all(
        queue_engine.usage(name) == queue_resources.ZERO for name in queue_engine.tree.accepted
    )
    assert all(
        queue_engine.last_starvation_start(name) is None for name in queue_engine.tree.accepted
    )


@settings(max_examples=100)
@given(crowds(), st.data())
def test_the_next_is_who_would_be_first_of_a_line_made_anew(
    crowd: tuple[list[queues.Queue], list[order.PendingEntry]], data: st.DataObject
) -> None:
    results, waiting = crowd
    queue_engine, fresh = an_engine(GPUS, *results), an_engine(GPUS, *results)
    line = queue_engine.schedule_order(waiting, NOON)
    left = [*waiting]
    while left:
        pending_entry = next(line)
        again = next(fresh.schedule_order(left, NOON))
        assert pending_entry == again
        left.remove(pending_entry)
        for engine in (queue_engine, fresh):
            engine.charge(pending_entry.key, pending_entry.queue, pending_entry.requested)
        if data.draw(st.booleans()):
            for engine in (queue_engine, fresh):
                engine.charge(pending_entry.key, pending_entry.queue, None)
    assert next(line, None) is None


@settings(max_examples=100)
@given(forests(), st.data())
def test_queue_usage_equals_the_sum_of_its_claims_after_any_sequence(
    drawn_queues: list[queues.Queue], data: st.DataObject
) -> None:
    queue_engine = an_engine(GPUS, *drawn_queues)
    charges: dict[int, tuple[str, queue_resources.Amounts]] = {}
    names = ["", *(item.name for item in drawn_queues)]
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["charge", "charge", "free", "queue"])):
            case "charge":
                claim, leaf = data.draw(st.integers(0, 3)), data.draw(st.sampled_from(names))
                charges[claim] = leaf, some(data.draw(st.integers(0, 4)), "T4")
                queue_engine.charge(claim, *charges[claim])
            case "free":
                claim = data.draw(st.integers(0, 3))
                charges.pop(claim, None)
                queue_engine.charge(claim, "", None)
            case _:
                draw = data.draw(st.sampled_from(drawn_queues))
                gone = data.draw(st.booleans())
                queue_engine.set_queue(draw.name, None if gone else draw)
    for name in queue_engine.tree.accepted:
        mine = [taken for leaf, taken in charges.values() if name in queue_engine.tree.path(leaf)]
        assert queue_engine.usage(name) == queue_resources.sum_amounts(mine)


@settings(max_examples=100)
@given(forests(), st.data())
def test_admitted_workloads_never_exceed_a_limit(
    drawn_queues: list[queues.Queue], data: st.DataObject
) -> None:
    queue_engine = an_engine(GPUS, *drawn_queues)
    for number in range(data.draw(st.integers(0, 20))):
        leaf = data.draw(st.sampled_from(queue_engine.tree.leaves))
        amounts = some(data.draw(st.integers(1, 8)) / 2)
        if queue_engine.exceeded_limit(leaf, amounts) is None:
            queue_engine.charge(number, leaf, amounts)
    for name, item in queue_engine.tree.accepted.items():
        bounds = [item.limit.gpus, None if item.borrowing else item.deserved.gpus]
        assert all(queue_engine.usage(name).gpus <= most for most in bounds if most is not None)


@settings(max_examples=100)
@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=5))
def test_an_omitted_queue_leaves_the_tree_as_if_it_did_not_exist(
    drawn: list[tuple[int | None, int | None]],
) -> None:
    results = [
        queue(f"q{number}", f"q{parent}" if parent is not None else "", deserved=due)
        for number, (parent, due) in enumerate(drawn)
    ]
    queue_tree = tree.build_tree(results)
    again = tree.build_tree([result for result in results if result.name not in queue_tree.faults])
    assert not again.faults
    assert (again.accepted, again.children, again.deserved) == (
        queue_tree.accepted,
        queue_tree.children,
        queue_tree.deserved,
    )
    assert queue_tree.accepted.keys() | queue_tree.faults.keys() == {
        "",
        *(result.name for result in results),
    }


def test_a_reference_that_tries_every_case_knows_who_is_full() -> None:
    weights = {"a": Fraction(1), "b": Fraction(3)}
    fractions = among(["a", "b"], weights, {"a": ALL, "b": Fraction(1, 4)}, ALL)
    assert fractions == {"a": Fraction(3, 4), "b": Fraction(1, 4)}
    assert named(1).gpus == 1000
