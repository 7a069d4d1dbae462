"""Node filters as kube-scheduler will check them (D5), and filters of our own.

A node that was requested for another workload, or is about to be removed, takes no pods.
`node_rejection` is decided by the node itself, `cross_node_rejection` by pods of other nodes.
"""

from collections.abc import Collection, Iterator

from driver import reasons
from driver.resources.core import nodes, pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import (
    domain_filters,
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
from driver.scheduling.snapshot import node_usage, snapshot

_NO_USAGE = snapshot.NodeUsage()


def depends_on_resources_alone(view: snapshot.Snapshot, workload: allocator_types.Workload) -> bool:
    """Return whether free resources alone decide about an open node (`NodeState.is_open`)."""
    pod = workload.pod
    return not (
        workload.allocated_claims
        or pod.node_selector
        or pod.affinity is not None
        or pod.host_ports
        or pod.volume_claims
        or pod.disks
        or view.population.has_nominated
    )


def rejection(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> allocator_types.NodeRejection | None:
    """Return why the node does not fit the workload's pod; None if it does."""
    return node_rejection(view, node, workload) or cross_node_rejection(view, node, workload)


def node_rejection(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> allocator_types.NodeRejection | None:
    """Return why the node itself does not fit, whatever is on others."""
    for reason, detail in _rejections(view, node, workload):
        if detail:
            return allocator_types.NodeRejection(reason, detail)
    return None


def cross_node_rejection(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> allocator_types.NodeRejection | None:
    """Return why pods of other nodes, or of this one, exclude the pod by labels and terms."""
    states = domain_filters.prefilter(view, workload)
    return None if states is None else states.rejection(node)


def _rejections(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> Iterator[tuple[reasons.Reason, str]]:
    """Yield reasons in reporting order; "" for none. Irrelevant checks are skipped."""
    pod, use = workload.pod, effective_usage(view, node, workload.pod)
    if workload.allocated_claims:
        yield reasons.Reason.NODE_PINNED, _pinned_elsewhere(node, workload)
    if node.leaving:
        # Tolerations do not matter: the pod would be removed with the node.
        yield reasons.Reason.NODE_INTERRUPTED, f"taint {node.leaving}"
    if use.placeholders:
        yield reasons.Reason.NODE_ARRIVING, "asked for, not complete yet"
    if not node.ready:
        yield reasons.Reason.NODE_NOT_READY, "not ready"
    if node.cordoned:
        yield reasons.Reason.NODE_CORDONED, node_unschedulable.rejection(node, pod)
    if node.taints:
        yield reasons.Reason.NODE_TAINTED, taint_toleration.rejection(node, pod)
    if pod.node_selector or pod.affinity is not None:
        yield reasons.Reason.NODE_MISMATCH, node_affinity.rejection(node, pod)
    if pod.host_ports:
        yield reasons.Reason.NODE_PORT_TAKEN, node_ports.rejection(use, pod)
    yield reasons.Reason.NODE_FULL, node_resources_fit.rejection(view, node, use, pod)
    if pod.volume_claims or pod.disks:
        yield from _volume_rejections(view, node, pod)


def _volume_rejections(
    view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod
) -> Iterator[tuple[reasons.Reason, str]]:
    held, others = view.storage, other_pods(view, node, pod)
    first = domain_filters.nominated_first(view, node.name, pod)
    yield reasons.Reason.NODE_VOLUME_IN_USE, volume_restrictions.rejection(pod, [*others, *first])
    yield reasons.Reason.NODE_VOLUME, volume_binding.rejection(held, node, pod, others)
    yield reasons.Reason.NODE_VOLUME, volume_zone.rejection(held, node, pod)
    yield (
        reasons.Reason.NODE_VOLUME_LIMIT,
        node_volume_limits.rejection(held, node, pod, others, first),
    )


def other_pods(view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod) -> Collection[pods.Pod]:
    """Return the other pods of a node."""
    return [other for other in view.pods_on(node.name).values() if other.uid != pod.uid]


def _pinned_elsewhere(node: nodes.Node, workload: allocator_types.Workload) -> str:
    for claim in workload.allocated_claims:
        selector = claim.allocation.selector if claim.allocation else None
        if selector is not None and not selector.matches(node.name, node.labels):
            return f"claim {claim.key} is allocated elsewhere"
    return ""


def effective_usage(view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod) -> snapshot.NodeUsage:
    """Return a node's usage, including nominated pods that come first."""
    use = view.usage.get(node.name, _NO_USAGE)
    if not view.population.has_nominated:
        return use
    nominated = domain_filters.nominated_first(view, node.name, pod)
    return node_usage.add_usage(use, node_usage.sum_usage(nominated)) if nominated else use


def insufficient_resource(
    view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod
) -> node_resources_fit.InsufficientResource | None:
    """Return the first resource that a node has too little of; None if there is none."""
    use = effective_usage(view, node, pod)
    return node_resources_fit.insufficient_resource(view, node, use, pod)


def max_pods(view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod) -> int:
    """Return how many pods like this one fit the node, given that one does."""
    if pod.host_ports:
        return 1
    use = effective_usage(view, node, pod)
    return node_resources_fit.max_pods(view, node, use, pod)
