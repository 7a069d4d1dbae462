from fractions import Fraction

import pytest

from driver.resources import queues
from driver.scheduling.queues import fair_share, tree
from tests.support.builders.queues import in_gpus, named, queue, some

GPUS = 16
FLEET = some(GPUS)


def shares(demand: dict[str, float], *found: queues.Queue) -> dict[str, Fraction]:
    """In GPUs, of a fleet of 16."""
    asked = {name: Fraction(of) / GPUS for name, of in demand.items()}
    return in_gpus(fair_share.fair_shares(tree.build_tree(found), FLEET, asked), GPUS)


def test_by_weight_where_all_ask_for_more() -> None:
    found = shares({"a": 16, "b": 16}, queue("a"), queue("b", weight=3))
    assert found == {"a": 4, "b": 12}


def test_what_one_does_not_ask_for_is_the_others() -> None:
    found = shares({"a": 16, "b": 2, "c": 16}, queue("a"), queue("b", weight=3), queue("c"))
    assert found == {"a": 7, "b": 2, "c": 7}


def test_what_is_deserved_comes_before_weights() -> None:
    found = shares({"a": 16, "b": 16}, queue("a", deserved=8), queue("b", weight=3))
    assert found == {"a": 10, "b": 6}


def test_nobody_has_more_than_the_limit() -> None:
    found = shares({"a": 16, "b": 16}, queue("a"), queue("b", weight=3, limit=5))
    assert found == {"a": 11, "b": 5}


def test_without_borrowing_it_ends_at_what_is_deserved() -> None:
    found = shares({"a": 16, "b": 16}, queue("a", deserved=3, borrowing=False), queue("b"))
    assert found == {"a": 3, "b": 13}


def test_more_deserved_than_there_is_is_scaled_down() -> None:
    found = shares(
        {"a": 99, "b": 99, "c": 99}, queue("a", deserved=24), queue("b", deserved=8), queue("c")
    )
    assert found == {"a": 12, "b": 4, "c": 0}


def test_down_the_tree_children_share_what_their_parent_has() -> None:
    found = shares(
        {"x": 16, "y": 16, "b": 16},
        *(queue("a", weight=1), queue("b", weight=1)),
        *(queue("x", "a", weight=3), queue("y", "a", weight=1)),
    )
    assert found == {"a": 8, "b": 8, "x": 6, "y": 2}


def test_a_parent_has_what_its_children_deserve() -> None:
    found = shares(
        {"x": 16, "b": 16},
        *(queue("a"), queue("b", weight=99)),
        queue("x", "a", deserved=4),
    )
    assert found["x"] == 4 + Fraction(12, 100)


def test_pods_of_no_queue_are_one_more_queue_of_weight_one() -> None:
    found = shares({"a": 16, "": 16}, queue("a", weight=3))
    assert found == {"a": 12, "": 4}


def test_nothing_is_fair_where_nothing_is_asked() -> None:
    assert shares({}, queue("a", deserved=3)) == {"a": 0}


def test_past_use_beyond_what_is_deserved_lessens_what_is_fair_now() -> None:
    made = tree.build_tree([queue("a", deserved=4), queue("b", deserved=4)])
    asked = {"a": Fraction(1), "b": Fraction(1)}
    past = {"a": Fraction(2, GPUS), "b": Fraction(6, GPUS)}
    found = in_gpus(fair_share.fair_shares(made, FLEET, asked, past), GPUS)
    # 8 are beyond: with 2 and 6 in the past both would be at 4 on average.
    assert found == {"a": 10, "b": 6}


def test_past_use_never_takes_what_is_deserved() -> None:
    made = tree.build_tree([queue("a", deserved=4), queue("b")])
    found = fair_share.fair_shares(
        made,
        FLEET,
        {"a": fair_share.ONE, "b": fair_share.ONE},
        {"a": fair_share.ONE, "b": fair_share.ZERO},
    )
    assert found["a"] * GPUS == 4


def test_a_limit_counts_in_the_proportions_in_which_is_asked() -> None:
    made = tree.build_tree([queue("p", limit=named(memory=160 << 30)), queue("a", "p"), queue("b")])
    lean = some(16)
    asked = {"a": type(lean)(16000, lean.memory // 4, 1600), "b": some(16)}
    found = in_gpus(fair_share.fair_shares_of_amounts(made, FLEET, asked), GPUS)
    # A quarter of a GPU's memory beside each GPU: 160Gi are eight GPUs' worth of it.
    assert found == {"p": 8, "a": 8, "b": 8}


def test_a_limit_by_model_counts_too() -> None:
    made = tree.build_tree([queue("a", limit=named(models={"T4": 2000})), queue("b")])
    asked = {"a": some(8, "T4"), "b": some(16)}
    assert in_gpus(fair_share.fair_shares_of_amounts(made, FLEET, asked), GPUS) == {"a": 2, "b": 14}


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
def test_of_what_is_deserved_the_least_part_counts(due: queues.Amounts, gpus: int) -> None:
    made = tree.build_tree([queue("a", deserved=due)])
    assert fair_share.deserved_shares(made, FLEET)["a"] * GPUS == gpus


def test_water_that_is_too_much_fills_all_and_no_more() -> None:
    basins = {
        "a": fair_share.Basin(fair_share.ONE, Fraction(1)),
        "b": fair_share.Basin(fair_share.ZERO, Fraction(1)),
    }
    assert fair_share.fill_basins(basins, Fraction(5)) == {"a": 1, "b": 1}
