import itertools

from tests.chaos import draw
from tests.soak import pods

ASKED = pods.Asked(seed=7, pods=100, fault_s=60.0)


def test_what_a_process_may_end_by_comes_only_before_the_part_that_is_judged() -> None:
    early = pods.paced(ASKED, lambda: 39, lambda: False)
    late = pods.paced(ASKED, lambda: 40, lambda: False)
    assert {one.kind for one in itertools.islice(early, 65)} == set(draw.Kind)
    kinds = {one.kind for one in itertools.islice(late, 65)}
    assert kinds == set(draw.Kind) - pods.SHORT_LIVES
    assert {draw.Kind.GPU_LOST, draw.Kind.KUBELET_KILLED} <= kinds


def test_faults_end_when_all_pods_have_come_and_gone() -> None:
    over = iter((False, False, True))
    found = list(pods.paced(ASKED, lambda: 0, lambda: next(over)))
    assert [(one.number, one.pause_s) for one in found] == [(0, 60.0), (1, 60.0)]
