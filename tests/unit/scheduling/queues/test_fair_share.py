from fractions import Fraction

import pytest

from driver.resources import queues
from driver.scheduling.queues import fair_share, tree
from tests.support.builders.queues import in_gpus, named, queue, some

GPUS = 16
FLEET = some(GPUS)


def shares(demand: dict[str, float], *results: queues.Queue) -> dict[str, Fraction]:
    """In GPUs, of a fleet of 16."""
    fractions = {name: Fraction(total) / GPUS for name, total in demand.items()}
    return in_gpus(fair_share.fair_shares(tree.build_tree(results), FLEET, fractions), GPUS)


def test_saturated_queues_share_by_weight() -> None:
    fractions = shares({"a": 16, "b": 16}, queue("a"), queue("b", weight=3))
    assert fractions == {"a": 4, "b": 12}


def test_unused_share_goes_to_other_queues() -> None:
    fractions = shares({"a": 16, "b": 2, "c": 16}, queue("a"), queue("b", weight=3), queue("c"))
    assert fractions == {"a": 7, "b": 2, "c": 7}


def test_deserved_amounts_come_before_weights() -> None:
    fractions = shares({"a": 16, "b": 16}, queue("a", deserved=8), queue("b", weight=3))
    assert fractions == {"a": 10, "b": 6}


def test_no_queue_gets_more_than_its_limit() -> None:
    fractions = shares({"a": 16, "b": 16}, queue("a"), queue("b", weight=3, limit=5))
    assert fractions == {"a": 11, "b": 5}


def test_without_borrowing_it_ends_at_what_is_deserved() -> None:
    fractions = shares({"a": 16, "b": 16}, queue("a", deserved=3, borrowing=False), queue("b"))
    assert fractions == {"a": 3, "b": 13}


def test_more_deserved_than_there_is_is_scaled_down() -> None:
    fractions = shares(
        {"a": 99, "b": 99, "c": 99}, queue("a", deserved=24), queue("b", deserved=8), queue("c")
    )
    assert fractions == {"a": 12, "b": 4, "c": 0}


def test_down_the_tree_children_share_what_their_parent_has() -> None:
    fractions = shares(
        {"x": 16, "y": 16, "b": 16},
        *(queue("a", weight=1), queue("b", weight=1)),
        *(queue("x", "a", weight=3), queue("y", "a", weight=1)),
    )
    assert fractions == {"a": 8, "b": 8, "x": 6, "y": 2}


def test_a_parent_has_what_its_children_deserve() -> None:
    fractions = shares(
        {"x": 16, "b": 16},
        *(queue("a"), queue("b", weight=99)),
        queue("x", "a", deserved=4),
    )
    assert fractions["x"] == 4 + Fraction(12, 100)


def test_pods_of_no_queue_are_one_more_queue_of_weight_one() -> None:
    fractions = shares({"a": 16, "": 16}, queue("a", weight=3))
    assert fractions == {"a": 12, "": 4}


def test_nothing_is_fair_where_nothing_is_asked() -> None:
    assert shares({}, queue("a", deserved=3)) == {"a": 0}


def test_past_use_beyond_what_is_deserved_lessens_what_is_fair_now() -> None:
    queue_tree = tree.build_tree([queue("a", deserved=4), queue("b", deserved=4)])
    fractions = {"a": Fraction(1), "b": Fraction(1)}
    past = {"a": Fraction(2, GPUS), "b": Fraction(6, GPUS)}
    gpus = in_gpus(fair_share.fair_shares(queue_tree, FLEET, fractions, past), GPUS)
    # 8 are beyond: with 2 and 6 in the past both would be at 4 on average.
    assert gpus == {"a": 10, "b": 6}


def test_past_use_never_takes_what_is_deserved() -> None:
    queue_tree = tree.build_tree([queue("a", deserved=4), queue("b")])
    fractions = fair_share.fair_shares(
        queue_tree,
        FLEET,
        {"a": fair_share.ONE, "b": fair_share.ONE},
        {"a": fair_share.ONE, "b": fair_share.ZERO},
    )
    assert fractions["a"] * GPUS == 4


def test_a_limit_counts_in_the_proportions_in_which_is_asked() -> None:
    queue_tree = tree.build_tree(
        [queue("p", limit=named(memory=160 << 30)), queue("a", "p"), queue("b")]
    )
    lean = some(16)
    amounts = {"a": type(lean)(16000, lean.memory // 4, 1600), "b": some(16)}
    fractions = in_gpus(fair_share.fair_shares_of_amounts(queue_tree, FLEET, amounts), GPUS)
    # A quarter of a GPU's memory beside each GPU: 160Gi are eight GPUs' worth of it.
    assert fractions == {"p": 8, "a": 8, "b": 8}


def test_a_limit_by_model_counts_too() -> None:
    queue_tree = tree.build_tree([queue("a", limit=named(models={"T4": 2000})), queue("b")])
    amounts = {"a": some(8, "T4"), "b": some(16)}
    assert in_gpus(fair_share.fair_shares_of_amounts(queue_tree, FLEET, amounts), GPUS) == {
        "a": 2,
        "b": 14,
    }


@pytest.mark.parametrize(
    ("due", "gpus"),
    [
        (named(4, memory=80 << 30), 1),
        (named(memory=160 << 30), 2),
        (named(compute=400), 4),
        (named(models={"T4": 1000, "A10": 2000}), 3),
        (named(2, models={"T4": 9000}), 2),
        (named(), 0),
    ],
)
def test_the_least_deserved_fraction_counts(due: queues.Amounts, gpus: int) -> None:
    queue_tree = tree.build_tree([queue("a", deserved=due)])
    assert fair_share.deserved_shares(queue_tree, FLEET)["a"] * GPUS == gpus


def test_water_that_is_too_much_fills_all_and_no_more() -> None:
    basins = {
        "a": fair_share.Basin(fair_share.ONE, Fraction(1)),
        "b": fair_share.Basin(fair_share.ZERO, Fraction(1)),
    }
    assert fair_share.fill_basins(basins, Fraction(5)) == {"a": 1, "b": 1}
