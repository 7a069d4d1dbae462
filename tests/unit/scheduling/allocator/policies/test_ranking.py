import pytest

from driver import errors
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import ranking
from tests.support.builders import node_capacities

USED = node_capacities.candidate(
    node_capacities.room(node_capacities.TAKEN, node_capacities.idle()), *node_capacities.whole(1)
)
FRESH = node_capacities.candidate(
    node_capacities.room(node_capacities.idle(), node_capacities.idle()), *node_capacities.whole(1)
)


def test_policies_score_in_the_order_in_which_they_are_named() -> None:
    both = ranking.parse_policies("spread, pack").scores(USED)
    assert both == tuple(reversed(ranking.parse_policies("pack,spread").scores(USED)))


def test_a_policy_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(errors.BadInput, match=r"'best' is no policy; expected some of frag.*pack"):
        ranking.parse_policies("pack,best")
    with pytest.raises(errors.BadInput, match="'' is no policy"):
        ranking.parse_policies("pack,")


def test_with_no_policy_named_nobody_cares() -> None:
    assert not ranking.parse_policies("").has_policies
    assert ranking.parse_policies("").scores(USED) == ()
    assert all(ranking.parse_policies(name).has_policies for name in policies.POLICIES)


def test_the_policy_that_decided_says_why() -> None:
    judge = ranking.parse_policies("topology,pack")
    own = judge.scores(USED)
    why = judge.explain_choice(USED, own, judge.scores(FRESH))
    assert why == "the fullest node that still fits: 1 of 2 GPUs were free, 0 are left"
    assert judge.explain_choice(USED, own, None) == "the only node that fits"
    assert judge.explain_choice(USED, own, own) == why
    assert ranking.parse_policies("").explain_choice(USED, (), ()) == "the first by name"
