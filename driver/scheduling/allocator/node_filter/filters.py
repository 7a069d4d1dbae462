"""The fit of a pod to a node, as kube-scheduler will check it (D5), and what comes before.

A node that is on its way for somebody else, or about to be taken away, takes nobody. `of_node` is
what the node decides by itself, `elsewhere` what pods of other nodes decide.
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

_UNUSED = snapshot.NodeUsage()


def refusal(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> allocator_types.Refusal | None:
    """Say why the node does not do for the workload's pod; None when it does."""
    return of_node(view, node, workload) or elsewhere(view, node, workload)


def of_node(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> allocator_types.Refusal | None:
    """Say why the node itself does not do, whatever there is on others."""
    for reason, detail in _objections(view, node, workload):
        if detail:
            return allocator_types.Refusal(reason, detail)
    return None


def elsewhere(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> allocator_types.Refusal | None:
    """Say why pods of other nodes, or of this one, keep the pod away by their labels and terms."""
    states = domain_filters.of(view, workload)
    return None if states is None else states.refusal(node)


def _objections(
    view: snapshot.Snapshot, node: nodes.Node, workload: allocator_types.Workload
) -> Iterator[tuple[reasons.Reason, str]]:
    """In the order in which they are told; "" for none. What cannot be is not looked at."""
    pod, use = workload.pod, used(view, node, workload.pod)
    if workload.settled:
        yield reasons.Reason.NODE_PINNED, _elsewhere(node, workload)
    if node.leaving:
        # Whatever the pod tolerates: it would go with the node.
        yield reasons.Reason.NODE_INTERRUPTED, f"taint {node.leaving}"
    if use.placeholders:
        yield reasons.Reason.NODE_ARRIVING, "asked for, not complete yet"
    if not node.ready:
        yield reasons.Reason.NODE_NOT_READY, "not ready"
    if node.cordoned:
        yield reasons.Reason.NODE_CORDONED, node_unschedulable.objection(node, pod)
    if node.taints:
        yield reasons.Reason.NODE_TAINTED, taint_toleration.objection(node, pod)
    if pod.node_selector or pod.affinity is not None:
        yield reasons.Reason.NODE_MISMATCH, node_affinity.objection(node, pod)
    if pod.host_ports:
        yield reasons.Reason.NODE_PORT_TAKEN, node_ports.objection(use, pod)
    yield reasons.Reason.NODE_FULL, node_resources_fit.objection(node, use, pod)
    if pod.volume_claims or pod.disks:
        yield from _of_volumes(view, node, pod)


def _of_volumes(
    view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod
) -> Iterator[tuple[reasons.Reason, str]]:
    held, others = view.storage, company(view, node, pod)
    first = domain_filters.rivals(view, node.name, pod)
    yield reasons.Reason.NODE_VOLUME_IN_USE, volume_restrictions.objection(pod, [*others, *first])
    yield reasons.Reason.NODE_VOLUME, volume_binding.objection(held, node, pod, others)
    yield reasons.Reason.NODE_VOLUME, volume_zone.objection(held, node, pod)
    yield (
        reasons.Reason.NODE_VOLUME_LIMIT,
        node_volume_limits.objection(held, node, pod, others, first),
    )


def company(view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod) -> Collection[pods.Pod]:
    """The other pods of a node."""
    return [other for other in view.pods_on(node.name).values() if other.uid != pod.uid]


def _elsewhere(node: nodes.Node, workload: allocator_types.Workload) -> str:
    for claim in workload.settled:
        selector = claim.allocation.selector if claim.allocation else None
        if selector is not None and not selector.matches(node.name, node.labels):
            return f"claim {claim.key} is allocated elsewhere"
    return ""


def used(view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod) -> snapshot.NodeUsage:
    """Sum what its pods take of a node, and those nominated to it that come first."""
    use = view.usage.get(node.name, _UNUSED)
    if not view.population.has_nominated:
        return use
    nominated = domain_filters.rivals(view, node.name, pod)
    return node_usage.add_usage(use, node_usage.sum_usage(nominated)) if nominated else use


def lack(
    view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod
) -> node_resources_fit.Lack | None:
    """The first resource that a node has too little of; None where there is none."""
    return node_resources_fit.lack(node, used(view, node, pod), pod)


def most(view: snapshot.Snapshot, node: nodes.Node, pod: pods.Pod) -> int:
    """Count how many pods like this one a node has room for, where it has room for one."""
    if pod.host_ports:
        return 1
    return node_resources_fit.most(node, used(view, node, pod), pod)
