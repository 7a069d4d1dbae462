"""NodeResourcesFit: what a pod requests must be left of the node's allocatable. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from driver import names
from driver.resources.core import nodes, pods
from driver.resources.dra import device_classes
from driver.scheduling.snapshot import snapshot

_PODS = "pods"


@dataclass(frozen=True, slots=True)
class InsufficientResource:
    """A resource that a node has too little of, `cpu` in milli-cores."""

    resource: str
    requested: int
    free: int


def free_resources(node: nodes.Node, use: snapshot.NodeUsage) -> Mapping[str, int]:
    """Return what pods leave of a node's allocatable resources, `pods` among them."""
    free = {name: amount - use.requests.get(name, 0) for name, amount in node.allocatable.items()}
    free[_PODS] = node.allocatable.get(_PODS, 0) - use.pod_count
    return free


def has_room(free: Mapping[str, int], pod: pods.Pod) -> bool | None:
    """Return whether a pod fits what is free; None: it depends on who serves a resource."""
    if free[_PODS] < 1:
        return False
    for name, amount in pod.requests.items():
        if amount > 0 and amount > free.get(name, 0):
            return None if "/" in name else False
    return True


def insufficient_resource(
    view: snapshot.Snapshot, node: nodes.Node, use: snapshot.NodeUsage, pod: pods.Pod
) -> InsufficientResource | None:
    """Return the first resource that a node has too little of; None if there is none.

    A resource of a DeviceClass that no device plugin serves on the node is left to kube-scheduler,
    which makes a claim of it there (KEP-5004).
    """
    allowed = node.allocatable.get(_PODS, 0)
    if use.pod_count + 1 > allowed:
        return InsufficientResource(_PODS, 1, allowed - use.pod_count)
    for name, amount in pod.requests.items():
        free = node.allocatable.get(name, 0) - use.requests.get(name, 0)
        if amount > 0 and amount > free and not _is_claimed(view, node, name):
            return InsufficientResource(name, amount, free)
    return None


def _is_claimed(view: snapshot.Snapshot, node: nodes.Node, resource: str) -> bool:
    """Return whether kube-scheduler makes a claim of an extended resource on the node.

    It gets no device of the controller, so a class that names a managed driver does not count.
    """
    if node.allocatable.get(resource, 0) > 0 or "/" not in resource:
        return False
    implicit = view.classes.get(resource.removeprefix(names.CLASS_RESOURCE_PREFIX))
    classes = (
        [implicit]
        if implicit is not None
        else [entry for entry in view.classes.values() if entry.extended_resource == resource]
    )
    return any(not _is_managed(view, device_class) for device_class in classes)


def _is_managed(view: snapshot.Snapshot, device_class: device_classes.DeviceClass) -> bool:
    return any(
        f'"{driver}"' in text or f"'{driver}'" in text
        for driver in view.managed_drivers
        for text in device_class.selectors
    )


def rejection(
    view: snapshot.Snapshot, node: nodes.Node, use: snapshot.NodeUsage, pod: pods.Pod
) -> str:
    """Return the first resource that is short, in words; "" if none is."""
    short = insufficient_resource(view, node, use, pod)
    if short is None:
        return ""
    if short.resource == _PODS:
        return f"{use.pod_count} pods, at most {node.allocatable.get(_PODS, 0)}"
    unit = "m" if short.resource == "cpu" else ""
    return f"asks {short.requested}{unit} {short.resource}, {max(short.free, 0)}{unit} free"


def max_pods(
    view: snapshot.Snapshot, node: nodes.Node, use: snapshot.NodeUsage, pod: pods.Pod
) -> int:
    """Return how many pods like this one fit the node, given that one does."""
    free = [
        (node.allocatable.get(name, 0) - use.requests.get(name, 0)) // amount
        for name, amount in pod.requests.items()
        if amount > 0 and not _is_claimed(view, node, name)
    ]
    return min([node.allocatable.get(_PODS, 0) - use.pod_count, *free])
