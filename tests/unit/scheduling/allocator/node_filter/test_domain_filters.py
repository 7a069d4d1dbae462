"""Remembered answers about pods of other nodes hold for the pod that asks."""

from dataclasses import replace

import pytest

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import domain_filters
from tests.support.scenarios import affinity


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_a_nominated_pod_rivals_others_and_never_itself(order: tuple[str, str]) -> None:
    view = affinity.view([affinity.a_node("a"), affinity.a_node("b")])
    apart = affinity.apart(affinity.term("web"))
    pods = {name: affinity.a_pod(name, app="web", affinity=apart) for name in ("x", "y")}
    pods["y"] = replace(pods["y"], nominated=ids.NodeName("a"))
    for pod in pods.values():
        view.set_pod(pod.key, pod)
    fits = {name: affinity.fitting(view, pods[name]) for name in order}
    assert fits == {"x": ["b"], "y": ["a", "b"]}


def test_labels_tell_pods_apart_only_where_a_placed_pod_looks_at_them() -> None:
    view = affinity.view([affinity.a_node("a")])
    web, database = affinity.a_pod("x", app="web"), affinity.a_pod("y", app="db")
    assert domain_filters.pod_signature(view, web) == domain_filters.pod_signature(view, database)
    loner = affinity.a_pod("one", "a", affinity=affinity.apart(affinity.term("web")))
    view.set_pod(loner.key, loner)
    assert domain_filters.pod_signature(view, web) != domain_filters.pod_signature(view, database)


def test_priority_tells_pods_apart_only_where_a_pod_is_nominated() -> None:
    view = affinity.view([affinity.a_node("a")])
    low, high = affinity.a_pod("x"), affinity.a_pod("y", priority=9)
    assert domain_filters.pod_signature(view, low) == domain_filters.pod_signature(view, high)
    nominated = replace(affinity.a_pod("z"), nominated=ids.NodeName("a"))
    view.set_pod(nominated.key, nominated)
    assert domain_filters.pod_signature(view, low) != domain_filters.pod_signature(view, high)


def test_a_pod_that_nobody_minds_is_not_asked_about() -> None:
    view = affinity.view([affinity.a_node("a")])
    assert (
        domain_filters.prefilter(view, allocator_types.Workload(affinity.a_pod("x", app="web"), ()))
        is None
    )


def test_pods_that_only_an_index_tells_apart_are_one_to_placed_pods() -> None:
    view = affinity.view([affinity.a_node("a")])
    loner = affinity.a_pod("one", "a", affinity=affinity.apart(affinity.term("web")))
    view.set_pod(loner.key, loner)
    pods = [affinity.a_pod(f"x-{index}", app="web") for index in range(3)]
    indexed = [
        replace(pod, labels={**pod.labels, "index": str(index)}) for index, pod in enumerate(pods)
    ]
    assert len({domain_filters.pod_signature(view, pod) for pod in indexed}) == 1
