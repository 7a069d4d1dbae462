"""Results of our filters on a raw cluster, plugin by plugin."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from driver import ids, names
from driver.resources.core import namespaces, nodes, pods, storage, volumes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import (
    domain_filters,
    filters,
    node_affinity,
    node_ports,
    node_resources_fit,
    node_unschedulable,
    taint_toleration,
)
from driver.scheduling.allocator.node_filter.volumes import (
    node_volume_limits,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from driver.scheduling.snapshot import cluster_state, snapshot, storage_index
from tests.oracle.filters import drawing

Refusals = Mapping[str, Mapping[str, str]]
"""By plugin and node why, in our words."""
_Judge = Callable[[nodes.Node], str]


def shown(drawn: drawing.Cluster) -> cluster_state.ClusterState:
    """The picture of a raw cluster."""
    state = cluster_state.ClusterState(names.DRIVER)
    for space in map(namespaces.parse, drawn.namespaces):
        state.set_namespace(space.name, space)
    for node in map(nodes.parse, drawn.nodes):
        state.set_node(node.name, node)
    for pod in map(pods.parse, drawn.pods):
        state.set_pod(pod.key, pod)
    _store(state, drawn)
    return state


def _store(state: cluster_state.ClusterState, drawn: drawing.Cluster) -> None:
    for claim in map(volumes.parse_claim, drawn.claims):
        state.set_volume_claim(ids.Key(f"{claim.namespace}/{claim.name}"), claim)
    for volume in map(volumes.parse_volume, drawn.volumes):
        state.set_volume(volume.name, volume)
    for storage_class in map(storage.parse_class, drawn.classes):
        state.set_storage_class(storage_class.name, storage_class)
    for node in map(storage.parse_node, drawn.csiNodes):
        state.set_csi_node(node.name, node)
    for driver in map(storage.parse_driver, drawn.csiDrivers):
        state.set_csi_driver(driver.name, driver)
    for capacity in map(storage.parse_capacity, drawn.capacities):
        state.set_storage_capacity(capacity.key, capacity)
    for attachment in map(storage.parse_attachment, drawn.attachments):
        state.set_attachment(attachment.name, attachment)


def answers(drawn: drawing.Cluster) -> Sequence[Refusals]:
    """Return the rejections of each pod to place."""
    view = shown(drawn)
    return [_answer(view, pods.parse(raw)) for raw in drawn.incoming]


def _answer(view: snapshot.Snapshot, pod: pods.Pod) -> Refusals:
    result: dict[str, dict[str, str]] = {}
    for plugin, judge in _judges(view, pod).items():
        for name, node in view.nodes.items():
            message = judge(node)
            if message:
                result.setdefault(plugin, {})[name] = message
    return result


def _judges(view: snapshot.Snapshot, pod: pods.Pod) -> Mapping[str, _Judge]:
    def used(node: nodes.Node) -> snapshot.NodeUsage:
        return filters.effective_usage(view, node, pod)

    return {
        "NodeUnschedulable": lambda node: node_unschedulable.rejection(node, pod),
        "TaintToleration": lambda node: taint_toleration.rejection(node, pod),
        "NodeAffinity": lambda node: node_affinity.rejection(node, pod),
        "NodePorts": lambda node: node_ports.rejection(used(node), pod),
        "NodeResourcesFit": lambda node: node_resources_fit.rejection(view, node, used(node), pod),
        **_of_volumes(view, pod),
        **_beyond(view, pod),
    }


def _of_volumes(view: snapshot.Snapshot, pod: pods.Pod) -> Mapping[str, _Judge]:
    held = view.storage

    def others(node: nodes.Node) -> Collection[pods.Pod]:
        return filters.other_pods(view, node, pod)

    def first(node: nodes.Node) -> Collection[pods.Pod]:
        return domain_filters.nominated_first(view, node.name, pod)

    claimed = _missing_claim(held, pod)
    claimed = claimed or volume_restrictions.exclusive_claim_in_use(held, view.population, pod)
    return {
        "VolumeRestrictions": lambda node: (
            claimed or volume_restrictions.rejection(pod, [*others(node), *first(node)])
        ),
        "NodeVolumeLimits": lambda node: node_volume_limits.rejection(
            held, node, pod, others(node), first(node)
        ),
        "VolumeBinding": lambda node: volume_binding.rejection(held, node, pod),
        "VolumeZone": lambda node: volume_zone.rejection(held, node, pod),
    }


def _missing_claim(held: storage_index.StorageIndex, pod: pods.Pod) -> str:
    """Return a missing volume claim, which the controller reports under VolumeBinding."""
    for name in pod.volume_claims:
        key = ids.Key(f"{pod.namespace}/{name}")
        if name not in pod.ephemeral_claims and key not in held.claims:
            return f"volume claim {name} {held.missing_claim_message()}"
    return ""


def _beyond(view: snapshot.Snapshot, pod: pods.Pod) -> Mapping[str, _Judge]:
    filter_state = domain_filters.prefilter(view, allocator_types.Workload(pod, ()))
    if filter_state is None:
        return {}
    spread = replace(filter_state, affinity=None, claim_in_use="")
    affinity = replace(filter_state, spread=None, claim_in_use="")
    return {
        "PodTopologySpread": lambda node: _words(spread.rejection(node)),
        "InterPodAffinity": lambda node: _words(affinity.rejection(node)),
    }


def _words(refusal: allocator_types.NodeRejection | None) -> str:
    return "" if refusal is None else refusal.detail


def facade(drawn: drawing.Cluster) -> Sequence[Mapping[str, str]]:
    """Return for each pod to place, by node, the first rejection of all our filters."""
    view = shown(drawn)
    results = []
    for raw in drawn.incoming:
        workload = allocator_types.Workload(pods.parse(raw), ())
        node_rejections = {
            name: filters.rejection(view, node, workload) for name, node in view.nodes.items()
        }
        results.append(
            {
                str(name): _words(node_rejection)
                for name, node_rejection in node_rejections.items()
                if node_rejection is not None
            }
        )
    return results


def raw(drawn: drawing.Cluster) -> dict[str, Any]:
    """The cluster as the program reads it."""
    return asdict(drawn)
