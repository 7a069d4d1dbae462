from typing import Any

from driver import ids, reasons
from driver.resources.core import namespaces, pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.gangs import overlay
from driver.scheduling.snapshot import snapshot
from tests import clusters

Reason = reasons.Reason
NODES = [
    clusters.a_node("a", "east"),
    clusters.a_node("b", "east"),
    clusters.a_node("c", "west"),
    clusters.a_node("d"),
]


def test_anti_affinity_keeps_a_pod_from_the_nodes_of_those_it_names() -> None:
    shown = clusters.view(NODES, [clusters.a_pod("one", "a", "web")])
    pod = clusters.a_pod("two", affinity=clusters.apart(clusters.term("web")))
    assert clusters.reasons_of(shown, pod) == {"a": Reason.NODE_POD_ANTI_AFFINITY}


def test_anti_affinity_by_zone_keeps_it_from_the_zone() -> None:
    shown = clusters.view(NODES, [clusters.a_pod("one", "a", "web")])
    pod = clusters.a_pod("two", affinity=clusters.apart(clusters.term("web", clusters.ZONE)))
    assert clusters.fitting(shown, pod) == ["c", "d"]


def test_the_anti_affinity_of_a_placed_pod_keeps_others_away() -> None:
    loner = clusters.a_pod("one", "a", "db", affinity=clusters.apart(clusters.term("web")))
    shown = clusters.view(NODES, [loner])
    assert clusters.reasons_of(shown, clusters.a_pod("two", app="web")) == {
        "a": Reason.NODE_POD_ANTI_AFFINITY
    }
    assert clusters.reasons_of(shown, clusters.a_pod("three", app="other")) == {}


def test_affinity_wants_a_pod_that_every_term_selects() -> None:
    shown = clusters.view(NODES, [clusters.a_pod("one", "a", "web")])
    pod = clusters.a_pod("two", affinity=clusters.near(clusters.term("web", clusters.ZONE)))
    assert clusters.fitting(shown, pod) == ["a", "b"]
    assert clusters.reasons_of(shown, pod)["c"] is Reason.NODE_POD_AFFINITY


def test_the_first_of_pods_that_want_each_other_is_let_in() -> None:
    pod = clusters.a_pod("one", app="web", affinity=clusters.near(clusters.term("web")))
    assert clusters.fitting(clusters.view(NODES), pod) == ["a", "b", "c", "d"]
    shown = clusters.view(NODES, [clusters.a_pod("other", "c", "web")])
    assert clusters.fitting(shown, pod) == ["c"]


def test_other_namespaces_count_only_where_the_term_names_them() -> None:
    other = clusters.a_pod("one", "a", "web", namespace="other")
    shown = clusters.view(NODES, [other], {"other": {"team": "x"}, "default": {}})
    plain = clusters.a_pod("two", affinity=clusters.apart(clusters.term("web")))
    assert clusters.reasons_of(shown, plain) == {}
    ways: list[dict[str, Any]] = [
        {"namespaces": ["other"]},
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {"team": "x"}}},
    ]
    for more in ways:
        pod = clusters.a_pod("two", affinity=clusters.apart(clusters.term("web", **more)))
        assert [*clusters.reasons_of(shown, pod)] == ["a"]


def test_a_namespace_counts_by_its_labels_as_they_are_now() -> None:
    chosen: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    loner = clusters.a_pod(
        "one", "a", namespace="other", affinity=clusters.apart(clusters.term("web", **chosen))
    )
    shown = clusters.view(NODES, [loner], {"default": {}})
    pod = clusters.a_pod("two", app="web")
    assert clusters.reasons_of(shown, pod) == {}
    shown.set_namespace("default", namespaces.Namespace("default", {"team": "x"}))
    assert [*clusters.reasons_of(shown, pod)] == ["a"]


def test_a_pod_in_flight_counts_as_on_its_node() -> None:
    coming = clusters.a_pod("one", app="web")
    shown = clusters.view(NODES, [coming])
    pod = clusters.a_pod("two", affinity=clusters.apart(clusters.term("web")))
    assert clusters.reasons_of(shown, pod) == {}
    flight = snapshot.InFlight(coming, ids.NodeName("b"), {})
    shown.begin_write(flight)
    assert [*clusters.reasons_of(shown, pod)] == ["b"]
    shown.end_write(flight)
    assert clusters.reasons_of(shown, pod) == {}


def nominated(name: str, node: str, priority: int) -> pods.Pod:
    return clusters.a_pod(
        name, app="web", priority=priority, status={"nominatedNodeName": node, "phase": "Pending"}
    )


def test_a_nominated_pod_counts_for_pods_of_no_higher_priority() -> None:
    shown = clusters.view(NODES, [nominated("one", "a", 5)])
    apart = clusters.apart(clusters.term("web"))
    assert [*clusters.reasons_of(shown, clusters.a_pod("two", affinity=apart))] == ["a"]
    assert clusters.reasons_of(shown, clusters.a_pod("top", affinity=apart, priority=6)) == {}


def test_a_nominated_pod_is_no_company_yet() -> None:
    shown = clusters.view(NODES, [nominated("one", "a", 5)])
    pod = clusters.a_pod("two", affinity=clusters.near(clusters.term("web")))
    assert clusters.fitting(shown, pod) == []


def test_members_of_a_gang_on_trial_count_for_each_other() -> None:
    shown = clusters.view(NODES)
    trial = overlay.DecisionOverlay(shown)
    pod = clusters.a_pod("one", app="web", affinity=clusters.apart(clusters.term("web")))
    trial.apply(snapshot.InFlight(pod, ids.NodeName("a"), {}))
    again = clusters.a_pod("two", app="web", affinity=clusters.apart(clusters.term("web")))
    asked = allocator_types.Workload(again, ())
    assert filters.rejection(trial, shown.nodes[ids.NodeName("a")], asked)
    trial.undo(1)
    assert not filters.rejection(trial, shown.nodes[ids.NodeName("a")], asked)
