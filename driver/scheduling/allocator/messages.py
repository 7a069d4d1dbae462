"""Messages of allocation results, for events and conditions (D19). Pure."""

from collections.abc import Sequence

from driver import ids, reasons
from driver.resources.dra import feature_gates
from driver.scheduling.allocator import types as allocator_types

_MAX_NODES = 8


def placement(result: allocator_types.Placement) -> str:
    """`Allocated gpu-0000-18-00-0 on node-a: the fullest node that still fits: ...`."""
    return f"Allocated {devices(result)} on {result.node}: {result.explanation}"


def devices(result: allocator_types.Placement) -> str:
    """`gpu-0000-18-00-0, gpu-0000-3b-00-0-mps (memory 20Gi, compute 25)`."""
    return ", ".join(_assigned_device(assignment) for assignment in result.assignments)


def _assigned_device(assignment: allocator_types.DeviceAssignment) -> str:
    """Its name, and of a share how much: `gpu-0000-18-00-0-mps (memory 20Gi, compute 25)`."""
    if not assignment.shared:
        return assignment.device.device
    parts = ", ".join(
        f"{name} {amount.text}" for name, amount in assignment.result.consumed.items()
    )
    return f"{assignment.device.device} ({parts})" if parts else assignment.device.device


def unschedulable(result: allocator_types.Unschedulable) -> str:
    """Return how many devices fit per node and what was lacking; equal nodes are grouped."""
    if result.blocker is not None:
        return f"{result.blocker}: {result.detail}"
    if not result.rejections:
        return "No node publishes devices that the controller allocates"
    lines = [
        f"{_node_names(names)}: {node_rejection(rejection)}"
        for rejection, names in result.rejections.items()
    ]
    return "No node fits. " + "; ".join(lines)


def unschedulable_on_node(result: allocator_types.Unschedulable) -> str:
    """Return the message for a single node: `0 of 1 devices fit, 1 lacking (1 DeviceInUse)`."""
    if result.blocker is not None or not result.rejections:
        return unschedulable(result)
    return "; ".join(map(node_rejection, result.rejections))


def _node_names(names: Sequence[ids.NodeName]) -> str:
    if len(names) <= _MAX_NODES:
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_NODES])} and {len(names) - _MAX_NODES} more"


def node_rejection(rejection: allocator_types.NodeRejection) -> str:
    """Return why one node does not fit."""
    if rejection.node_reason is not None:
        return f"{rejection.node_reason} ({rejection.detail})"
    text = f"{rejection.fits} of {rejection.requested} devices fit"
    lacking = rejection.requested - rejection.fits
    counted = _reason_counts(rejection.device_reasons)
    if rejection.unsupported_fields:
        described = ", ".join(map(feature_gates.describe, rejection.unsupported_fields))
        counted += f", not allocated for {described}"
    if rejection.budget_exceeded:
        why = "the search for a combination took too many steps"
        return f"{reasons.Reason.SEARCH_BUDGET_EXCEEDED} ({why}): {text}{counted}"
    if not lacking:
        return f"{text}, and no combination of them does{counted}"
    return f"{text}, {lacking} lacking{counted}"


def _reason_counts(counts: allocator_types.ReasonCounts) -> str:
    if not counts:
        return ""
    # Devices of other kinds are many, and do not matter beside the other reasons.
    significant = [
        entry for entry in counts if entry[0] is not reasons.Reason.SELECTOR_MISMATCH
    ] or counts
    return " (" + ", ".join(f"{count} {reason}" for reason, count in significant) + ")"
