"""Nodes that take nobody: asked for and not complete yet, or about to be taken away."""

import dataclasses
from typing import Any

import pytest

from driver import ids, names, reasons
from driver.resources.core import nodes, pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.explain import holders, without_pods
from driver.scheduling.gangs import overlay
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support import snapshots
from tests.support.builders import objects

A = ids.NodeName("node-a")
OURS = "ration-system"
LEAVING = frozenset({"karpenter.sh/disrupted"})
TOLERANT = [{"operator": "Exists"}]


def view(node: nodes.Node, *existing: pods.Pod) -> cluster_state.ClusterState:
    state = cluster_state.ClusterState(snapshots.DRIVER, cluster_state.NodeMarkers(OURS, LEAVING))
    state.set_node(node.name, node)
    for pod in existing:
        state.set_pod(pod.key, pod)
    return state


def why(source: snapshot.Snapshot, pod: pods.Pod) -> allocator_types.NodeRejection | None:
    return filters.rejection(source, source.nodes[A], allocator_types.Workload(pod, ()))


def a_placeholder(namespace: str = OURS, **spec: Any) -> pods.Pod:
    pod = objects.pod("node-h100-0", nodeName=A, **spec)
    labels = {names.PLACEHOLDER_LABEL: "h100"}
    return dataclasses.replace(pod, namespace=namespace, labels=labels)


def test_a_node_on_which_a_placeholder_sits_takes_nobody_until_that_is_gone() -> None:
    asking = a_placeholder()
    world = view(objects.node(), asking)
    refused = why(world, objects.pod(tolerations=TOLERANT))
    assert refused is not None
    assert refused.node_reason is reasons.Reason.NODE_ARRIVING
    world.set_pod(asking.key, None)
    assert why(world, objects.pod()) is None


def test_anybody_may_use_the_label_elsewhere() -> None:
    assert why(view(objects.node(), a_placeholder("team")), objects.pod()) is None


def test_a_placeholder_counts_for_everybody_who_looks_from_above() -> None:
    asking, other = a_placeholder(), objects.pod("other", nodeName=A)
    world = view(objects.node(), asking, other)
    gone = without_pods.WithoutPods(world, [holders.DeviceHolder(other, A, ())])
    above = overlay.DecisionOverlay(world)
    above.apply(snapshot.InFlight(objects.pod("coming"), A, {}))
    for each in (gone, above):
        refused = why(each, objects.pod())
        assert refused is not None
        assert refused.node_reason is reasons.Reason.NODE_ARRIVING


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_node_that_is_about_to_be_taken_away_takes_nobody_whatever_they_tolerate(
    effect: str,
) -> None:
    taint = {"key": "karpenter.sh/disrupted", "effect": effect}
    world = view(objects.node(taints=[taint]))
    refused = why(world, objects.pod(tolerations=TOLERANT))
    assert refused is not None
    assert (refused.node_reason, refused.detail) == (
        reasons.Reason.NODE_INTERRUPTED,
        "taint karpenter.sh/disrupted",
    )
    world.set_node(A, objects.node())
    assert why(world, objects.pod()) is None


def test_a_taint_that_keeps_nobody_away_announces_nothing() -> None:
    taint = {"key": "karpenter.sh/disrupted", "effect": "PreferNoSchedule"}
    assert why(view(objects.node(taints=[taint])), objects.pod()) is None
