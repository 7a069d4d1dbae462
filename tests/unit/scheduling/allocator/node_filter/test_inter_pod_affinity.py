from typing import Any

from driver import ids, reasons
from driver.resources.core import namespaces, pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.gangs import overlay
from driver.scheduling.snapshot import snapshot
from tests.support.scenarios import affinity

Reason = reasons.Reason
NODES = [
    affinity.a_node("a", "east"),
    affinity.a_node("b", "east"),
    affinity.a_node("c", "west"),
    affinity.a_node("d"),
]


def test_anti_affinity_keeps_a_pod_from_the_nodes_of_those_it_names() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    pod = affinity.a_pod("two", affinity=affinity.apart(affinity.term("web")))
    assert affinity.reasons_of(shown, pod) == {"a": Reason.NODE_POD_ANTI_AFFINITY}


def test_anti_affinity_by_zone_keeps_it_from_the_zone() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    pod = affinity.a_pod("two", affinity=affinity.apart(affinity.term("web", affinity.ZONE)))
    assert affinity.fitting(shown, pod) == ["c", "d"]


def test_the_anti_affinity_of_a_placed_pod_keeps_others_away() -> None:
    loner = affinity.a_pod("one", "a", "db", affinity=affinity.apart(affinity.term("web")))
    shown = affinity.view(NODES, [loner])
    assert affinity.reasons_of(shown, affinity.a_pod("two", app="web")) == {
        "a": Reason.NODE_POD_ANTI_AFFINITY
    }
    assert affinity.reasons_of(shown, affinity.a_pod("three", app="other")) == {}


def test_affinity_wants_a_pod_that_every_term_selects() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    pod = affinity.a_pod("two", affinity=affinity.near(affinity.term("web", affinity.ZONE)))
    assert affinity.fitting(shown, pod) == ["a", "b"]
    assert affinity.reasons_of(shown, pod)["c"] is Reason.NODE_POD_AFFINITY


def test_the_first_of_pods_that_want_each_other_is_let_in() -> None:
    pod = affinity.a_pod("one", app="web", affinity=affinity.near(affinity.term("web")))
    assert affinity.fitting(affinity.view(NODES), pod) == ["a", "b", "c", "d"]
    shown = affinity.view(NODES, [affinity.a_pod("other", "c", "web")])
    assert affinity.fitting(shown, pod) == ["c"]


def test_other_namespaces_count_only_where_the_term_names_them() -> None:
    other = affinity.a_pod("one", "a", "web", namespace="other")
    shown = affinity.view(NODES, [other], {"other": {"team": "x"}, "default": {}})
    plain = affinity.a_pod("two", affinity=affinity.apart(affinity.term("web")))
    assert affinity.reasons_of(shown, plain) == {}
    ways: list[dict[str, Any]] = [
        {"namespaces": ["other"]},
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {"team": "x"}}},
    ]
    for more in ways:
        pod = affinity.a_pod("two", affinity=affinity.apart(affinity.term("web", **more)))
        assert [*affinity.reasons_of(shown, pod)] == ["a"]


def test_a_namespace_counts_by_its_labels_as_they_are_now() -> None:
    chosen: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    loner = affinity.a_pod(
        "one", "a", namespace="other", affinity=affinity.apart(affinity.term("web", **chosen))
    )
    shown = affinity.view(NODES, [loner], {"default": {}})
    pod = affinity.a_pod("two", app="web")
    assert affinity.reasons_of(shown, pod) == {}
    shown.set_namespace("default", namespaces.Namespace("default", {"team": "x"}))
    assert [*affinity.reasons_of(shown, pod)] == ["a"]


def test_a_pod_in_flight_counts_as_on_its_node() -> None:
    coming = affinity.a_pod("one", app="web")
    shown = affinity.view(NODES, [coming])
    pod = affinity.a_pod("two", affinity=affinity.apart(affinity.term("web")))
    assert affinity.reasons_of(shown, pod) == {}
    flight = snapshot.InFlight(coming, ids.NodeName("b"), {})
    shown.begin_write(flight)
    assert [*affinity.reasons_of(shown, pod)] == ["b"]
    shown.end_write(flight)
    assert affinity.reasons_of(shown, pod) == {}


def nominated(name: str, node: str, priority: int) -> pods.Pod:
    return affinity.a_pod(
        name, app="web", priority=priority, status={"nominatedNodeName": node, "phase": "Pending"}
    )


def test_a_nominated_pod_counts_for_pods_of_no_higher_priority() -> None:
    shown = affinity.view(NODES, [nominated("one", "a", 5)])
    apart = affinity.apart(affinity.term("web"))
    assert [*affinity.reasons_of(shown, affinity.a_pod("two", affinity=apart))] == ["a"]
    assert affinity.reasons_of(shown, affinity.a_pod("top", affinity=apart, priority=6)) == {}


def test_a_nominated_pod_is_no_company_yet() -> None:
    shown = affinity.view(NODES, [nominated("one", "a", 5)])
    pod = affinity.a_pod("two", affinity=affinity.near(affinity.term("web")))
    assert affinity.fitting(shown, pod) == []


def test_members_of_a_gang_on_trial_count_for_each_other() -> None:
    shown = affinity.view(NODES)
    trial = overlay.DecisionOverlay(shown)
    pod = affinity.a_pod("one", app="web", affinity=affinity.apart(affinity.term("web")))
    trial.apply(snapshot.InFlight(pod, ids.NodeName("a"), {}))
    again = affinity.a_pod("two", app="web", affinity=affinity.apart(affinity.term("web")))
    workload = allocator_types.Workload(again, ())
    assert filters.rejection(trial, shown.nodes[ids.NodeName("a")], workload)
    trial.undo(1)
    assert not filters.rejection(trial, shown.nodes[ids.NodeName("a")], workload)
