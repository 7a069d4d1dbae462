"""NodeResourcesFit: what a pod requests must be left of the node's allocatable. Pure."""

from dataclasses import dataclass

from driver.resources.core import nodes, pods
from driver.scheduling.snapshot import snapshot

_PODS = "pods"


@dataclass(frozen=True, slots=True)
class InsufficientResource:
    """A resource that a node has too little of, `cpu` in milli-cores."""

    resource: str
    requested: int
    free: int


def insufficient_resource(
    node: nodes.Node, use: snapshot.NodeUsage, pod: pods.Pod
) -> InsufficientResource | None:
    """Return the first resource that a node has too little of; None if there is none."""
    allowed = node.allocatable.get(_PODS, 0)
    if use.pod_count + 1 > allowed:
        return InsufficientResource(_PODS, 1, allowed - use.pod_count)
    for name, amount in pod.requests.items():
        free = node.allocatable.get(name, 0) - use.requests.get(name, 0)
        if amount > 0 and amount > free:
            return InsufficientResource(name, amount, free)
    return None


def rejection(node: nodes.Node, use: snapshot.NodeUsage, pod: pods.Pod) -> str:
    """Return the first resource that is short, in words; "" if none is."""
    short = insufficient_resource(node, use, pod)
    if short is None:
        return ""
    if short.resource == _PODS:
        return f"{use.pod_count} pods, at most {node.allocatable.get(_PODS, 0)}"
    unit = "m" if short.resource == "cpu" else ""
    return f"asks {short.requested}{unit} {short.resource}, {max(short.free, 0)}{unit} free"


def max_pods(node: nodes.Node, use: snapshot.NodeUsage, pod: pods.Pod) -> int:
    """Return how many pods like this one fit the node, given that one does."""
    free = [
        (node.allocatable.get(name, 0) - use.requests.get(name, 0)) // amount
        for name, amount in pod.requests.items()
        if amount > 0
    ]
    return min([node.allocatable.get(_PODS, 0) - use.pod_count, *free])
