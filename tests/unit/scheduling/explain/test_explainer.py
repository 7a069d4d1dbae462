from dataclasses import replace

import pytest

from driver import ids
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer, nearest_fit
from tests.support import allocation, snapshots
from tests.support.builders import objects
from tests.support.scenarios import affinity, occupied_nodes


def adviser(crowd: occupied_nodes.Crowd) -> explainer.FitExplainer:
    return explainer.FitExplainer(snapshots.DECIDING, crowd.held.get, crowd.known.get)


def refused(
    crowd: occupied_nodes.Crowd, workload: allocator_types.Workload
) -> allocator_types.Unschedulable:
    return allocation.refused(dra_allocator.allocate(crowd.view, workload, snapshots.DECIDING))


@pytest.fixture
def workloads(monkeypatch: pytest.MonkeyPatch) -> list[allocator_types.Workload]:
    """The workloads for which it was looked."""
    workloads: list[allocator_types.Workload] = []
    real = nearest_fit.find_nearest_fit

    def of(*args: object) -> object:
        workloads.append(args[1])  # type: ignore[arg-type]
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(nearest_fit, "find_nearest_fit", of)
    return workloads


def test_pods_that_are_alike_are_looked_for_once_while_nothing_changes(
    workloads: list[allocator_types.Workload],
) -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    crowd.run("p", "node-a", "gpu-0")
    advised, workload = adviser(crowd), occupied_nodes.gpus()
    other = replace(workload, pod=replace(workload.pod, name="other", uid=ids.PodUid("other")))
    answers = [
        advised.explain(crowd.view, workload, refused(crowd, workload))
        for workload in (workload, other, other)
    ]
    assert [answer and answer.leaving for answer in answers] == [("default/p",)] * 3
    assert len(workloads) == 1
    crowd.run("q", "node-a")
    advised.explain(crowd.view, other, refused(crowd, other))
    assert len(workloads) == 2


def test_a_pod_with_a_node_to_avoid_is_looked_for_alone(
    workloads: list[allocator_types.Workload],
) -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1, "node-b": 1})
    crowd.run("p", "node-a", "gpu-0")
    advised, workload = adviser(crowd), occupied_nodes.gpus()
    workload = replace(workload, avoided_nodes={ids.NodeName("node-b"): "refused"})
    for _ in range(2):
        advised.explain(crowd.view, workload, refused(crowd, workload))
    assert len(workloads) == 2


def test_explanations_of_different_pods_are_rate_limited() -> None:
    crowd = occupied_nodes.of_sizes({f"node-{index:02}": 4 for index in range(20)})
    for number in range(20):
        for gpu in range(2):
            crowd.run(f"p{number}-{gpu}", f"node-{number:02}", f"gpu-{gpu}")
    advised = adviser(crowd)
    sizes = range(1, 400)
    waiting = [occupied_nodes.asks(objects.a_request(count=4), cpu=f"{size}m") for size in sizes]
    answer = refused(crowd, waiting[0])
    at_once = [workload for workload in waiting if _advised(advised, crowd, workload, answer)]
    assert explainer.MAX_SAVED_STEPS / nearest_fit.MAX_STEPS < len(at_once) < len(waiting)
    assert advised.can_explain(crowd.view, waiting[0])
    rest = [workload for workload in waiting if workload not in at_once]
    crowd.run("another", "node-00")
    again = [_advised(advised, crowd, rest[0], answer) for _ in range(40)]
    assert any(again)


def _advised(
    advised: explainer.FitExplainer,
    crowd: occupied_nodes.Crowd,
    workload: allocator_types.Workload,
    answer: allocator_types.Unschedulable,
) -> bool:
    if not advised.can_explain(crowd.view, workload):
        return False
    assert advised.explain(crowd.view, workload, answer) is not None
    return True


def test_pods_that_a_placed_pod_tells_apart_are_looked_for_each(
    workloads: list[allocator_types.Workload],
) -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    crowd.run("p", "node-a", "gpu-0")
    loner = affinity.a_pod("loner", "node-a", affinity=affinity.apart(affinity.term("web")))
    crowd.view.set_pod(loner.key, loner)
    advised, workload = adviser(crowd), occupied_nodes.gpus()
    for app in ("web", "db"):
        labelled = replace(workload, pod=replace(workload.pod, labels={"app": app}))
        advised.explain(crowd.view, labelled, refused(crowd, labelled))
    assert len(workloads) == 2
