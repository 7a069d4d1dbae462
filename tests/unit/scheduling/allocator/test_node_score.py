from typing import Any

from driver import ids
from driver.resources.core import pods
from driver.scheduling.allocator import node_score
from driver.scheduling.allocator import types as allocator_types
from tests.support.builders import objects
from tests.support.scenarios import affinity

NODES = [affinity.a_node("a", "east"), affinity.a_node("b", "east"), affinity.a_node("c", "west")]
SHUNNED = [{"key": "old", "value": "", "effect": "PreferNoSchedule"}]
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def choice(pod: pods.Pod, *placed: pods.Pod, shunned: bool = False) -> str:
    nodes = [affinity.a_node("a", "east", taints=SHUNNED), *NODES[1:]] if shunned else NODES
    shown = affinity.view(nodes, placed)
    wishes = node_score.pod_preferences(shown, allocator_types.Workload(pod, ()))
    assert wishes is not None
    return wishes.best_node([ids.NodeName(name) for name in ("a", "b", "c")])


def wish(app: str, key: str = affinity.HOST) -> list[objects.Raw]:
    return [{"weight": 10, "podAffinityTerm": affinity.term(app, key)}]


def test_a_pod_without_wishes_has_no_preferences() -> None:
    shown = affinity.view(NODES, [affinity.a_pod("one", "a", "web")])
    assert (
        node_score.pod_preferences(shown, allocator_types.Workload(affinity.a_pod("two"), ()))
        is None
    )


def test_a_preferred_label_wins() -> None:
    entry = {"key": affinity.ZONE, "operator": "In", "values": ["west"]}
    term = {"weight": 1, "preference": {"matchExpressions": [entry]}}
    pod = affinity.a_pod("new", affinity={"nodeAffinity": {PREFERRED: [term]}})
    assert choice(pod) == "c"


def test_a_node_with_a_taint_to_prefer_others_comes_last() -> None:
    assert choice(affinity.a_pod("new"), shunned=True) == "b"
    tolerant: Any = [{"key": "old", "operator": "Exists"}]
    assert choice(affinity.a_pod("new", tolerations=tolerant), shunned=True) == "a"


def test_a_pod_goes_near_those_it_prefers_and_away_from_those_it_does_not() -> None:
    other = affinity.a_pod("one", "b", "web")
    near = affinity.a_pod("new", affinity={"podAffinity": {PREFERRED: wish("web")}})
    assert choice(near, other) == "b"
    apart = {"podAntiAffinity": {PREFERRED: wish("web", affinity.ZONE)}}
    assert choice(affinity.a_pod("new", affinity=apart), other) == "c"


def test_the_wishes_of_placed_pods_count_as_well() -> None:
    fond = affinity.a_pod("one", "b", affinity={"podAffinity": {PREFERRED: wish("web")}})
    assert choice(affinity.a_pod("new", app="web"), fond) == "b"


def test_schedule_anyway_prefers_the_emptier_domain() -> None:
    constraint = affinity.spread("web", whenUnsatisfiable="ScheduleAnyway")
    pod = affinity.a_pod("new", app="web", topologySpreadConstraints=[constraint])
    assert choice(pod, affinity.a_pod("one", "a", "web")) == "c"
