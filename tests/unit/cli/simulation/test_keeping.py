from driver import ids
from driver.cli.simulation import keeping

A, B, C = (ids.NodeName(name) for name in "abc")


def ends(time_s: float, node: ids.NodeName, gpus: int) -> keeping.GpuRelease:
    return keeping.GpuRelease(time_s, node, gpus)


def test_the_first_moment_at_which_enough_is_free_on_one_node() -> None:
    ending = [ends(5, A, 2), ends(1, B, 1), ends(9, B, 8), ends(3, A, 2)]
    earliest_start = keeping.find_earliest({A: 0, B: 0}, ending, pods=1, gpus=4)
    assert earliest_start == keeping.EarliestStart(5, frozenset({A}))


def test_devices_free_now_can_be_reserved() -> None:
    earliest_start = keeping.find_earliest(
        {A: 3, B: 0}, [ends(5, A, 1), ends(1, B, 1)], pods=1, gpus=4
    )
    assert earliest_start == keeping.EarliestStart(5, frozenset({A}))


def test_the_pods_of_a_gang_may_lie_on_several_nodes() -> None:
    ending = [ends(1, A, 8), ends(2, B, 8), ends(3, C, 8)]
    earliest_start = keeping.find_earliest({A: 0, B: 0, C: 0}, ending, pods=2, gpus=8)
    assert earliest_start == keeping.EarliestStart(2, frozenset({A, B}))


def test_the_emptiest_fitting_nodes_are_reserved() -> None:
    earliest_start = keeping.find_earliest({A: 1, B: 3, C: 0}, [ends(1, C, 2)], pods=2, gpus=2)
    assert earliest_start == keeping.EarliestStart(1, frozenset({B, C}))


def test_an_infeasible_workload_reserves_nothing() -> None:
    assert keeping.find_earliest({A: 1}, [ends(1, A, 7)], pods=1, gpus=9) is None
