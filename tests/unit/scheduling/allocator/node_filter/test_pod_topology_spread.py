from typing import Any

import pytest

from driver import ids, reasons
from driver.resources.core import pods
from tests.support.scenarios import affinity

Reason = reasons.Reason
NODES = [affinity.a_node("a", "east"), affinity.a_node("b", "east"), affinity.a_node("c", "west")]


def spreading(skew: int = 1, app: str = "web", **more: Any) -> pods.Pod:
    constraint = affinity.spread("web", skew=skew, **more)
    return affinity.a_pod("new", app=app, topologySpreadConstraints=[constraint])


def test_a_domain_may_not_be_ahead_by_more_than_the_skew() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    assert affinity.reasons_of(shown, spreading()) == {
        "a": Reason.NODE_TOPOLOGY_SPREAD,
        "b": Reason.NODE_TOPOLOGY_SPREAD,
    }
    assert affinity.reasons_of(shown, spreading(2)) == {}


def test_a_node_without_the_label_does_not_do() -> None:
    shown = affinity.view([*NODES, affinity.a_node("d")])
    assert [*affinity.reasons_of(shown, spreading())] == ["d"]


def test_a_pod_that_the_selector_does_not_match_adds_nothing() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    assert affinity.reasons_of(shown, spreading(app="other")) == {}


def test_with_too_few_domains_the_least_is_zero() -> None:
    placed = [affinity.a_pod("one", "a", "web"), affinity.a_pod("two", "c", "web")]
    shown = affinity.view(NODES, placed)
    assert affinity.reasons_of(shown, spreading()) == {}
    assert [*affinity.reasons_of(shown, spreading(minDomains=3))] == ["a", "b", "c"]


def test_match_label_keys_narrow_whom_it_counts() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    constraint = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    every = spreading(labelSelector=constraint)
    own = spreading(app="mine", labelSelector=constraint, matchLabelKeys=["app"])
    assert [*affinity.reasons_of(shown, every)] == ["a", "b"]
    assert affinity.reasons_of(shown, own) == {}


@pytest.mark.parametrize(("policy", "refused"), [("Honor", []), ("Ignore", ["a"])])
def test_nodes_that_affinity_excludes_are_no_domains_if_honored(
    policy: str, refused: list[str]
) -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    constraint = affinity.spread("web", nodeAffinityPolicy=policy)
    pod = affinity.a_pod(
        "new",
        app="web",
        topologySpreadConstraints=[constraint],
        nodeSelector={affinity.HOST: "a"},
    )
    others = {"b": Reason.NODE_MISMATCH, "c": Reason.NODE_MISMATCH}
    reasons_of = affinity.reasons_of(shown, pod)
    assert [name for name in reasons_of if name not in others] == refused


@pytest.mark.parametrize(("policy", "refused"), [("Honor", []), ("Ignore", ["a", "b"])])
def test_tainted_nodes_are_no_domains_if_honored(policy: str, refused: list[str]) -> None:
    taints = [{"key": "down", "value": "", "effect": "NoSchedule"}]
    nodes = [*NODES[:2], affinity.a_node("c", "west", taints=taints)]
    shown = affinity.view(nodes, [affinity.a_pod("one", "a", "web")])
    reasons_of = affinity.reasons_of(shown, spreading(nodeTaintsPolicy=policy))
    assert [name for name in reasons_of if name != "c"] == refused


def test_pods_being_deleted_and_of_other_namespaces_do_not_count() -> None:
    leaving = pods.parse(
        {
            "metadata": {
                "name": "one",
                "namespace": "default",
                "uid": "1",
                "labels": {"app": "web"},
                "deletionTimestamp": "2026-11-21T09:00:00Z",
            },
            "spec": {"nodeName": "a", "containers": []},
        }
    )
    other = affinity.a_pod("two", "a", "web", namespace="other")
    assert affinity.reasons_of(affinity.view(NODES, [leaving, other]), spreading()) == {}


def test_a_changed_label_of_a_placed_pod_counts_at_once() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "other")])
    assert affinity.reasons_of(shown, spreading()) == {}
    mark = shown.revision
    shown.set_pod(ids.Key("default/one"), affinity.a_pod("one", "a", "web"))
    assert shown.revision != mark
    assert [*affinity.reasons_of(shown, spreading())] == ["a", "b"]


def test_schedule_anyway_refuses_nothing() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    assert affinity.reasons_of(shown, spreading(whenUnsatisfiable="ScheduleAnyway")) == {}
