"""Gangs' places beside the nearest there are, on 200 random clusters of eight nodes."""

import statistics

from tests.oracle import nearness

SEEDS = range(200)


def test_gangs_are_as_near_as_can_be() -> None:
    ratios: list[float] = []
    impossible = mixed = 0
    for seed in SEEDS:
        case = nearness.draw(seed)
        best, ours = nearness.optimum(case), nearness.ours(case)
        assert (best is None) == (ours is None), (seed, case, best, ours)
        if best is None or ours is None:
            impossible += 1
            continue
        ratios.append(best / ours)
        mixed += len({*case.sizes}) > 1
        if len({*case.sizes}) == 1:
            assert ours == best, (seed, case)
    assert statistics.mean(ratios) >= 0.98
    assert min(impossible, mixed) >= 10


def test_the_optimum_is_the_one_that_can_be_counted_by_hand() -> None:
    free = (((2, 2), (3,)), ((3,), (3,)))
    assert nearness.optimum(nearness.Case(free, (1,) * 4, required=False)) == 10_102
    assert nearness.optimum(nearness.Case(free, (1,) * 7, required=True)) == 10_203
    assert nearness.optimum(nearness.Case(free, (1,) * 8, required=True)) is None
    assert nearness.optimum(nearness.Case(free, (3, 3, 3), required=False)) == 20_303
