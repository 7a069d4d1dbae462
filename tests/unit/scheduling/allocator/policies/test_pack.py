from driver.scheduling.allocator.policies import base, pack
from tests.support.builders import node_capacities

PACK, SPREAD = pack.Pack(), pack.Spread()
SHARE = base.Usage(0, base.MPS, 250)


def test_pack_prefers_a_node_in_use_and_spread_an_unused_one() -> None:
    used = node_capacities.candidate(
        node_capacities.room(node_capacities.TAKEN, node_capacities.idle()),
        *node_capacities.whole(1),
    )
    fresh = node_capacities.candidate(
        node_capacities.room(node_capacities.idle(), node_capacities.idle()),
        *node_capacities.whole(1),
    )
    assert PACK.score(used) > PACK.score(fresh)
    assert SPREAD.score(used) < SPREAD.score(fresh)


def test_a_share_goes_to_a_gpu_that_is_shared_before_one_is_opened() -> None:
    candidate = node_capacities.candidate(
        node_capacities.room(node_capacities.shared(500), *[node_capacities.idle()] * 7), SHARE
    )
    opened = node_capacities.candidate(
        node_capacities.room(node_capacities.idle(), *[node_capacities.TAKEN] * 7), SHARE
    )
    assert PACK.score(candidate) > PACK.score(opened)


def test_scores_stay_in_their_range() -> None:
    full = node_capacities.candidate(
        node_capacities.room(node_capacities.shared(250), *[node_capacities.TAKEN] * 7), SHARE
    )
    none = node_capacities.candidate(node_capacities.room())
    for candidate in (full, none):
        assert 0 <= PACK.score(candidate) <= base.MAX_SCORE
        assert PACK.score(candidate) + SPREAD.score(candidate) == base.MAX_SCORE


def test_the_words_say_how_full_the_node_was_and_is() -> None:
    candidate = node_capacities.candidate(
        node_capacities.room(node_capacities.TAKEN, node_capacities.idle(), node_capacities.idle()),
        *node_capacities.whole(1),
    )
    counts = "2 of 3 GPUs were free, 1 are left"
    assert PACK.explain(candidate) == f"the fullest node that still fits: {counts}"
    assert SPREAD.explain(candidate) == f"the emptiest node: {counts}"
