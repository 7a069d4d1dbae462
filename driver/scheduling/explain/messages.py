"""Message of the nearest fit, in one sentence (D19). Pure."""

from collections.abc import Sequence

from driver.resources import quantities
from driver.scheduling.explain import nearest_fit, shortage

_MAX_PODS = 4
_MAX_BYTES = 1024
"""Limit of an event's note (events.k8s.io/v1)."""
_CUT = "... "
_MILLI = 1000
_BYTES = frozenset({"memory", "ephemeral-storage"})


def nearest_fit_message(nearest: nearest_fit.NearestFit) -> str:
    """`Needs 40Gi of one GPU; best is node-b gpu-0: 32Gi free; freeing pod x would suffice`.

    Where it never fits: `No GPU here has 141Gi of memory: the most is 80Gi, of node-b gpu-...`.
    """
    if nearest.can_ever_fit is False:
        return _node_never_message(nearest) if nearest.is_only_node else _never_message(nearest.gap)
    gap = _node_gap_message(nearest) if nearest.is_only_node else _gap_message(nearest)
    return f"{gap}; {freed_message(nearest.leaving)}" if nearest.leaving else gap


def freed_message(leaving: Sequence[str]) -> str:
    """`freeing pods x and y would suffice`."""
    shown = [*leaving[:_MAX_PODS]]
    rest = len(leaving) - len(shown)
    shown += [f"{rest} more"] if rest else []
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    return f"freeing pod{'s' if len(leaving) > 1 else ''} {listed} would suffice"


def join_sentence(message: str, sentence: str) -> str:
    """Append a sentence to a message; a message too long for an event is cut."""
    if not sentence:
        return message
    whole = f"{message}. {sentence}"
    if len(whole.encode()) <= _MAX_BYTES:
        return whole
    left = max(_MAX_BYTES - len(f"{_CUT}{sentence}".encode()), 0)
    return f"{message.encode()[:left].decode(errors='ignore')}{_CUT}{sentence}"


def _gap_message(nearest: nearest_fit.NearestFit) -> str:
    match nearest.gap:
        case shortage.CapacityGap(node, capacity, requested, free, device):
            amount = _device_amount(capacity, requested)
            return f"Needs {amount} of one GPU; best is {node} {device}: {free.text} free"
        case shortage.CountGap(node, kind, requested, free):
            return (
                f"Needs {_device_count(requested, kind)} of one node; best is {node}: {free} free"
            )
        case shortage.NodeResourceGap(node, resource, requested, free):
            needed, available = _node_amount(resource, requested), _node_amount(resource, free)
            return f"Needs {needed}; best is {node}: {available} free"
        case None:
            return f"Nearest is {nearest.node}"


def _node_gap_message(nearest: nearest_fit.NearestFit) -> str:
    """Return the gap if no other node counts: `Needs 2 GPUs: 1 free`."""
    match nearest.gap:
        case shortage.CapacityGap(capacity=capacity, requested=requested, free=free, device=device):
            amount = _device_amount(capacity, requested)
            return f"Needs {amount} of one GPU: {free.text} free, of {device}"
        case shortage.CountGap(kind=kind, requested=count, free=left):
            return f"Needs {_device_count(count, kind)}: {left} free"
        case _:
            return f"Other pods are in the way on {nearest.node}"


def _node_never_message(nearest: nearest_fit.NearestFit) -> str:
    """Return the gap if no other node counts: `Needs 2 GPUs: node-b has 1, used or not`."""
    node = nearest.node
    match nearest.gap:
        case shortage.CapacityGap(capacity=capacity, requested=requested, free=most):
            amount = _device_amount(capacity, requested)
            return f"Needs {amount} of one GPU: the most on {node} is {most.text}"
        case shortage.CountGap(kind=kind, requested=count, free=most) if kind:
            return f"Needs {_device_count(count, kind)}: {node} has {most}, used or not"
        case _:
            return f"{node} would not fit, even if empty"


def _never_message(gap: shortage.Gap | None) -> str:
    match gap:
        case shortage.CapacityGap(node, capacity, requested, free, device):
            amount = _device_amount(capacity, requested)
            return f"No GPU here has {amount}: the most is {free.text}, of {node} {device}"
        case shortage.CountGap(node, kind, requested, free) if kind:
            amount = _device_count(requested, kind)
            return f"No node here has {amount}, used or not: the most is {free}, of {node}"
        case shortage.NodeResourceGap(node, resource, requested, free):
            needed, available = _node_amount(resource, requested), _node_amount(resource, free)
            return f"No node here with GPUs has {needed}: the most is {available}, of {node}"
        case shortage.CountGap():
            return "No node has a requested device, used or free"
        case None:
            return "No node would fit, even if empty"


def _device_amount(capacity: str, requested: quantities.Quantity) -> str:
    return requested.text if capacity == "memory" else f"{requested.text} of {capacity}"


def _device_count(count: int, kind: str) -> str:
    name = kind or "device"
    if name in {"GPU", "share", "device"}:
        return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{count} {name} device{'' if count == 1 else 's'}"


def _node_amount(resource: str, amount: int) -> str:
    if resource == "cpu":
        whole = amount % _MILLI == 0
        return f"{amount // _MILLI} CPUs" if whole else f"{amount}m of CPU"
    if resource in _BYTES:
        return f"{quantities.from_bytes(amount).text} of the node's {resource}"
    if resource == "pods":
        return f"{'room for a pod' if amount else 'no room for one'}"
    return f"{amount} {resource}"
