"""Decisions of pods that pods of other nodes decide about: no answer is kept that has passed."""

from typing import Any

import pytest

from driver import ids, reasons
from driver.resources.core import pods, volumes
from driver.scheduling.allocator import allocation_result, dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.scenarios import affinity

Reason = reasons.Reason


@pytest.fixture
def view() -> cluster_state.ClusterState:
    """Two nodes of two zones with four GPUs each."""
    state = snapshots.view(objects.a_slice("a", 4), objects.a_slice("b", 4))
    for name, zone in (("a", "east"), ("b", "west")):
        state.set_node(ids.NodeName(name), affinity.a_node(name, zone))
    return state


@pytest.fixture
def allocator() -> dra_allocator.Allocator:
    return dra_allocator.Allocator(snapshots.DECIDING)


def workload(name: str, app: str = "web", **spec: Any) -> allocator_types.Workload:
    raw = objects.a_pod(name, name, **spec)
    raw["metadata"]["labels"] = {"app": app}
    return allocator_types.Workload(pods.parse(raw), (objects.claim(name),))


def place(
    view: cluster_state.ClusterState,
    allocator: dra_allocator.Allocator,
    request: allocator_types.Workload,
) -> str | frozenset[Reason]:
    """Return where it goes, and is then on its way to; or why it goes nowhere."""
    answer = allocator.decide(view, request)
    if isinstance(answer, allocator_types.Unschedulable):
        return answer.reasons
    allocations = allocation_result.build_allocations(view, request, answer, timestamp="")
    view.set_pod(request.pod.key, request.pod)
    view.begin_write(snapshot.InFlight(request.pod, answer.node, allocations))
    return str(answer.node)


def test_pods_of_one_shape_that_keep_apart_go_to_different_nodes(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    apart: dict[str, Any] = {"affinity": affinity.apart(affinity.term("web"))}
    results = [place(view, allocator, workload(name, **apart)) for name in ("x", "y", "z")]
    assert results == ["a", "b", frozenset({Reason.NODE_POD_ANTI_AFFINITY})]


def test_pods_of_one_shape_are_spread_over_zones(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    spread: dict[str, Any] = {"topologySpreadConstraints": [affinity.spread("web")]}
    results = [place(view, allocator, workload(name, **spread)) for name in "uvwx"]
    assert sorted(map(str, results)) == ["a", "a", "b", "b"]


def test_a_pod_of_the_same_shape_and_other_labels_is_not_kept_away(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    loner = affinity.a_pod("db", "a", "db", affinity=affinity.apart(affinity.term("web")))
    view.set_pod(loner.key, loner)
    assert place(view, allocator, workload("x", "web")) == "b"
    assert place(view, allocator, workload("y", "other")) in {"a", "b"}
    assert place(view, allocator, workload("z", "web")) == "b"


def test_a_label_that_changes_counts_for_the_next_decision(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    request = workload("x", affinity=affinity.near(affinity.term("db")))
    other = affinity.a_pod("one", "b", "other")
    view.set_pod(other.key, other)
    assert place(view, allocator, request) == frozenset({Reason.NODE_POD_AFFINITY})
    view.set_pod(other.key, affinity.a_pod("one", "b", "db"))
    assert place(view, allocator, request) == "b"


def test_a_volume_that_is_bound_later_counts_for_the_next_decision(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    request = workload("x", volumes=mounted)
    assert place(view, allocator, request) == frozenset({Reason.NODE_VOLUME})
    present = {"nodeAffinity": {"required": objects.on_host("b")}}
    view.set_volume("disk", volumes.parse_volume({"spec": present}))
    view.set_volume_claim(ids.Key("default/data"), volumes.VolumeClaim("disk"))
    assert place(view, allocator, request) == "b"


def test_room_for_a_nominated_pod_of_a_higher_priority_is_left(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    room = [{"name": "m", "resources": {"requests": {"cpu": "8"}}}]
    status = {"nominatedNodeName": "a", "phase": "Pending"}
    first = affinity.a_pod("first", containers=room, priority=9, status=status)
    assert place(view, allocator, workload("x")) == "a"
    view.set_pod(first.key, first)
    assert place(view, allocator, workload("y")) == "b"
    assert place(view, allocator, workload("z", priority=10)) == "a"


def test_a_preferred_zone_breaks_a_tie_of_our_policies(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    west = {"key": affinity.ZONE, "operator": "In", "values": ["west"]}
    term = {"weight": 1, "preference": {"matchExpressions": [west]}}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    assert place(view, allocator, workload("x", affinity={"nodeAffinity": wish})) == "b"
    assert place(view, allocator, workload("y")) == "b"  # packed: our policies come first


def test_a_pod_does_not_stand_in_its_own_way(
    view: cluster_state.ClusterState, allocator: dra_allocator.Allocator
) -> None:
    """One claim is allocated and pins it to a node; the other is still to be."""
    reserved = [{"resource": "pods", "name": "x", "uid": objects.uid_of("x")}]
    settled = objects.claim("one", status=objects.allocated("a", "gpu-0", reserved=reserved))
    raw = objects.a_pod("x", "one", "two", affinity=affinity.apart(affinity.term("web")))
    raw["metadata"]["labels"] = {"app": "web"}
    pod = pods.parse(raw)
    view.set_claim(settled.key, settled)
    view.set_pod(pod.key, pod)
    request = allocator_types.Workload(pod, (objects.claim("two"),), (settled,))
    assert place(view, allocator, request) == "a"
