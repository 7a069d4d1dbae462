"""Clusters of labelled nodes with pods on them, for what looks beyond one node."""

from collections.abc import Mapping, Sequence
from typing import Any

from driver import ids, reasons
from driver.resources.core import namespaces, nodes, pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def a_node(name: str, zone: str | None = None, **spec: Any) -> nodes.Node:
    raw = objects.a_node(name, **spec)
    if zone is not None:
        raw["metadata"]["labels"][ZONE] = zone
    return nodes.parse(raw)


def a_pod(
    name: str, node: str = "", app: str = "", namespace: str = "default", **spec: Any
) -> pods.Pod:
    raw = objects.a_pod(name, **spec, **({"nodeName": node} if node else {}))
    raw["metadata"] |= {"namespace": namespace, "labels": {"app": app} if app else {}}
    del raw["spec"]["resourceClaims"]
    return pods.parse(raw)


def selector(app: str) -> objects.Raw:
    return {"matchLabels": {"app": app}}


def term(app: str, key: str = HOST, **more: Any) -> objects.Raw:
    return {"labelSelector": selector(app), "topologyKey": key, **more}


def near(*terms: objects.Raw) -> objects.Raw:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: objects.Raw) -> objects.Raw:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(app: str, key: str = ZONE, skew: int = 1, **more: Any) -> objects.Raw:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector(app),
        **more,
    }


def view(
    results: Sequence[nodes.Node],
    placed: Sequence[pods.Pod] = (),
    spaces: Mapping[str, Mapping[str, str]] | None = None,
) -> cluster_state.ClusterState:
    state = cluster_state.build(snapshots.DRIVER, snapshots.caches(results, found_pods=placed))
    for name, labels in (spaces or {}).items():
        state.set_namespace(name, namespaces.Namespace(name, labels))
    return state


def reasons_of(shown: cluster_state.ClusterState, pod: pods.Pod) -> dict[str, reasons.Reason]:
    """Map each rejecting node to its reason; nodes that take the pod are left out."""
    workload = allocator_types.Workload(pod, ())
    refusals = {
        name: filters.rejection(shown, node, workload) for name, node in sorted(shown.nodes.items())
    }
    return {
        str(name): refusal.node_reason
        for name, refusal in refusals.items()
        if refusal is not None and refusal.node_reason is not None
    }


def fitting(shown: cluster_state.ClusterState, pod: pods.Pod) -> list[ids.NodeName]:
    """The nodes that take the pod, by name."""
    refused = reasons_of(shown, pod)
    return [name for name in sorted(shown.nodes) if name not in refused]
