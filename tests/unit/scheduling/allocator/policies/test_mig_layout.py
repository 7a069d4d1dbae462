from driver.scheduling.allocator.policies import base, mig_layout
from tests.support.builders import node_capacities

LAYOUT = mig_layout.MigLayout()


def score(card: base.GpuState, mask: int) -> int:
    taken = base.Usage(0, base.MIG, mask=mask)
    return LAYOUT.score(node_capacities.candidate(node_capacities.room(card), taken))


def test_the_smallest_instance_goes_where_the_fewest_others_could() -> None:
    scores = {index: score(node_capacities.idle(), 1 << index) for index in range(7)}
    assert max(scores, key=scores.__getitem__) == 6


def test_a_gpu_that_is_cut_is_filled_before_another_one_is() -> None:
    assert score(node_capacities.cut(0b11110000), 1 << 6) > score(node_capacities.idle(), 1 << 6)


def test_variants_of_a_profile_change_nothing() -> None:
    variants = (
        base.MigPlacement(f"1g.10gb{end}", 1 << index, 1)
        for end in ("+me", "-me")
        for index in range(7)
    )
    varied = base.GpuModel(
        "H100", 80 * node_capacities.GIB, (*node_capacities.H100.placements, *variants)
    )
    for part in node_capacities.H100.placements:
        assert score(node_capacities.idle(varied), part.mask) == score(
            node_capacities.idle(), part.mask
        )


def test_devices_other_than_mig_do_not_change_the_score() -> None:
    candidate = node_capacities.candidate(
        node_capacities.room(node_capacities.idle()), *node_capacities.whole(0)
    )
    assert LAYOUT.score(candidate) == base.MAX_SCORE
    assert LAYOUT.explain(candidate) == ""


def test_the_words_say_how_much_of_a_gpu_is_given_up() -> None:
    taken = base.Usage(0, base.MIG, mask=0b11111111)
    candidate = node_capacities.candidate(node_capacities.room(node_capacities.idle()), taken)
    assert (LAYOUT.score(candidate), LAYOUT.explain(candidate)) == (
        0,
        "100 % of a GPU's MIG placements are given up, the fewest there are",
    )
