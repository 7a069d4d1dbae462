"""Whether a pod fits a node, as kube-scheduler will check it (D5).

Ready, cordon, taints, selector, affinity, resources, host ports, volumes; and one that is on its
way for somebody else, or about to be taken away, takes nobody. What this cannot see, the scheduler
may still refuse; then the hold keeps order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from driver import ids, reasons
from driver.controller import view as cluster
from driver.controller.allocation import outcome
from driver.resources import nodes, pods

_CORDON_TAINT = "node.kubernetes.io/unschedulable"
_PODS = "pods"
_UNUSED = cluster.NodeUse()


def refusal(
    view: cluster.ClusterView, node: nodes.Node, workload: outcome.Workload
) -> outcome.Refusal | None:
    """Why the node does not do for the workload's pod; None when it does."""
    for reason, detail in _objections(view, node, workload):
        if detail:
            return outcome.Refusal(reason, detail)
    return None


def _objections(
    view: cluster.ClusterView, node: nodes.Node, workload: outcome.Workload
) -> Iterator[tuple[reasons.Reason, str]]:
    """In the order in which they are told; "" for none. What cannot be is not looked at."""
    pod, use = workload.pod, view.use.get(node.name, _UNUSED)
    if workload.settled:
        yield reasons.Reason.NODE_PINNED, _elsewhere(node, workload)
    if node.leaving:
        # Whatever the pod tolerates: it would go with the node.
        yield reasons.Reason.NODE_INTERRUPTED, f"taint {node.leaving}"
    if use.arriving:
        yield reasons.Reason.NODE_ARRIVING, "asked for, not complete yet"
    if not node.ready:
        yield reasons.Reason.NODE_NOT_READY, "not ready"
    if node.cordoned:
        yield reasons.Reason.NODE_CORDONED, _cordoned(pod)
    if node.taints:
        yield reasons.Reason.NODE_TAINTED, _untolerated(node, pod)
    if pod.node_selector or pod.affinity is not None:
        yield reasons.Reason.NODE_MISMATCH, _mismatch(node, pod)
    if pod.volume_claims:
        yield reasons.Reason.NODE_VOLUME, _unreachable_volume(view, node, pod)
    if pod.host_ports:
        yield reasons.Reason.NODE_PORT_TAKEN, _port_conflict(use, pod)
    yield reasons.Reason.NODE_FULL, _lacking(node, use, pod)


def _elsewhere(node: nodes.Node, workload: outcome.Workload) -> str:
    for claim in workload.settled:
        selector = claim.allocation.selector if claim.allocation else None
        if selector is not None and not selector.matches(node.name, node.labels):
            return f"claim {claim.key} is allocated elsewhere"
    return ""


def _cordoned(pod: pods.Pod) -> str:
    tolerated = any(one.tolerates(_CORDON_TAINT, "", "NoSchedule") for one in pod.tolerations)
    return "" if tolerated else "cordoned"


def _untolerated(node: nodes.Node, pod: pods.Pod) -> str:
    for taint in node.taints:
        if taint.effect not in nodes.BLOCKING or taint.key == _CORDON_TAINT:
            continue
        if not any(t.tolerates(taint.key, taint.value, taint.effect) for t in pod.tolerations):
            return f"taint {taint.key}={taint.value}:{taint.effect}"
    return ""


def _mismatch(node: nodes.Node, pod: pods.Pod) -> str:
    for key, value in pod.node_selector.items():
        if node.labels.get(key) != value:
            return f"nodeSelector {key}={value}"
    if pod.affinity is not None and not pod.affinity.matches(node.name, node.labels):
        return "required node affinity"
    return ""


def _unreachable_volume(view: cluster.ClusterView, node: nodes.Node, pod: pods.Pod) -> str:
    for name in pod.volume_claims:
        selector = view.volumes.get(ids.Key(f"{pod.namespace}/{name}"))
        if selector is not None and not selector.matches(node.name, node.labels):
            return f"volume of claim {name} is bound elsewhere"
    return ""


def _port_conflict(use: cluster.NodeUse, pod: pods.Pod) -> str:
    for wanted in pod.host_ports:
        for taken in use.ports:
            same = wanted.protocol == taken.protocol and wanted.port == taken.port
            everywhere = {"", "0.0.0.0", "::"}  # noqa: S104 - compared, nothing binds
            shared = wanted.address == taken.address or everywhere & {wanted.address, taken.address}
            if same and shared:
                return f"host port {wanted.port}/{wanted.protocol}"
    return ""


@dataclass(frozen=True, slots=True)
class Lack:
    """What a pod asks of a node's resource, and what of it is free: `cpu` in milli-cores."""

    resource: str
    asked: int
    free: int


def lack(view: cluster.ClusterView, node: nodes.Node, pod: pods.Pod) -> Lack | None:
    """The first resource that a node has too little of; None where there is none."""
    return _lack(node, view.use.get(node.name, _UNUSED), pod)


def _lack(node: nodes.Node, use: cluster.NodeUse, pod: pods.Pod) -> Lack | None:
    if use.count + 1 > node.allocatable.get(_PODS, 0):
        return Lack(_PODS, 1, node.allocatable.get(_PODS, 0) - use.count)
    for name, asked in pod.requests.items():
        free = node.allocatable.get(name, 0) - use.requests.get(name, 0)
        if asked and asked > free:
            return Lack(name, asked, free)
    return None


def _lacking(node: nodes.Node, use: cluster.NodeUse, pod: pods.Pod) -> str:
    found = _lack(node, use, pod)
    if found is None:
        return ""
    if found.resource == _PODS:
        return f"{use.count} pods, at most {node.allocatable.get(_PODS, 0)}"
    unit = "m" if found.resource == "cpu" else ""
    return f"asks {found.asked}{unit} {found.resource}, {max(found.free, 0)}{unit} free"


def most(view: cluster.ClusterView, node: nodes.Node, pod: pods.Pod) -> int:
    """How many pods like this one a node has room for, where it has room for one."""
    if pod.host_ports:
        return 1
    use = view.use.get(node.name, _UNUSED)
    free = [
        (node.allocatable.get(name, 0) - use.requests.get(name, 0)) // asked
        for name, asked in pod.requests.items()
        if asked
    ]
    return min([node.allocatable.get(_PODS, 0) - use.count, *free])
