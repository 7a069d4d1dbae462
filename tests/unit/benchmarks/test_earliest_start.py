from benchmarks.queues import earliest_start
from driver import ids

A, B, C = (ids.NodeName(name) for name in "abc")


def ends(at: float, node: ids.NodeName, gpus: int) -> earliest_start.GpuRelease:
    return earliest_start.GpuRelease(at, node, gpus)


def test_the_first_moment_at_which_enough_is_free_on_one_node() -> None:
    ending = [ends(5, A, 2), ends(1, B, 1), ends(9, B, 8), ends(3, A, 2)]
    found = earliest_start.find_earliest({A: 0, B: 0}, ending, pods=1, gpus=4)
    assert found == earliest_start.EarliestStart(5, frozenset({A}))


def test_what_is_free_now_counts() -> None:
    found = earliest_start.find_earliest(
        {A: 3, B: 0}, [ends(5, A, 1), ends(1, B, 1)], pods=1, gpus=4
    )
    assert found == earliest_start.EarliestStart(5, frozenset({A}))


def test_the_pods_of_a_gang_may_lie_on_several_nodes() -> None:
    ending = [ends(1, A, 8), ends(2, B, 8), ends(3, C, 8)]
    found = earliest_start.find_earliest({A: 0, B: 0, C: 0}, ending, pods=2, gpus=8)
    assert found == earliest_start.EarliestStart(2, frozenset({A, B}))


def test_of_nodes_that_would_do_the_emptiest_are_kept() -> None:
    found = earliest_start.find_earliest({A: 1, B: 3, C: 0}, [ends(1, C, 2)], pods=2, gpus=2)
    assert found == earliest_start.EarliestStart(1, frozenset({B, C}))


def test_what_never_fits_keeps_nothing() -> None:
    assert earliest_start.find_earliest({A: 1}, [ends(1, A, 7)], pods=1, gpus=9) is None
