import itertools
from collections.abc import Callable

from tests.chaos import draw
from tests.soak import pods

ASKED = pods.Asked(seed=7, pods=100, fault_s=60.0)


def steps(
    number: int, done: Callable[[], bool] = lambda: False, rush: Callable[[], None] = lambda: None
) -> pods.Steps:
    return pods.Steps(lambda: number, done, rush)


def test_faults_that_end_processes_come_before_the_judged_part() -> None:
    early, late = (pods.paced(ASKED, steps(entry)) for entry in (19, 20))
    assert {fault.kind for fault in itertools.islice(early, 65)} == set(draw.Kind)
    kinds = {fault.kind for fault in itertools.islice(late, 65)}
    assert kinds == set(draw.Kind) - pods.SHORT_LIVES
    assert {draw.Kind.GPU_LOST, draw.Kind.KUBELET_KILLED} <= kinds


def test_faults_end_when_all_pods_have_come_and_gone() -> None:
    over = iter((False, False, True))
    faults = list(pods.paced(ASKED, steps(0, lambda: next(over))))
    assert [(fault.number, fault.pause_s) for fault in faults] == [(0, 60.0), (1, 60.0)]


def test_once_nothing_ends_processes_any_more_a_rush_comes_and_only_then() -> None:
    rushes: list[int] = []
    early = pods.paced(ASKED, steps(19, rush=lambda: rushes.append(1)))
    assert len([*itertools.islice(early, 9)]) == 9
    assert not rushes
    late = pods.paced(ASKED, steps(20, rush=lambda: rushes.append(1)))
    assert len([*itertools.islice(late, 9)]) == 9
    assert rushes == [1]
