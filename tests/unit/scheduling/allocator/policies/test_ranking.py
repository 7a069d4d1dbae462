import pytest

from driver import errors
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import ranking
from tests import rooms

USED = rooms.candidate(rooms.room(rooms.TAKEN, rooms.idle()), *rooms.whole(1))
FRESH = rooms.candidate(rooms.room(rooms.idle(), rooms.idle()), *rooms.whole(1))


def test_policies_score_in_the_order_in_which_they_are_named() -> None:
    both = ranking.of("spread, pack").scores(USED)
    assert both == tuple(reversed(ranking.of("pack,spread").scores(USED)))


def test_a_policy_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(errors.BadInput, match=r"'best' is no policy; expected some of frag.*pack"):
        ranking.of("pack,best")
    with pytest.raises(errors.BadInput, match="'' is no policy"):
        ranking.of("pack,")


def test_with_no_policy_named_nobody_cares() -> None:
    assert not ranking.of("").cares
    assert ranking.of("").scores(USED) == ()
    assert all(ranking.of(name).cares for name in policies.POLICIES)


def test_the_policy_that_decided_says_why() -> None:
    judge = ranking.of("topology,pack")
    own = judge.scores(USED)
    why = judge.why(USED, own, judge.scores(FRESH))
    assert why == "the fullest node that still fits: 1 of 2 GPUs were free, 0 are left"
    assert judge.why(USED, own, None) == "the only node that fits"
    assert judge.why(USED, own, own) == why
    assert ranking.of("").why(USED, (), ()) == "the first by name"
