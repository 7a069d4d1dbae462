"""Answers in words, for events and conditions (D19). Pure."""

from collections.abc import Sequence

from driver import ids, reasons
from driver.scheduling.allocator import types as allocator_types

_MAX_NODES = 8


def placement(found: allocator_types.Placement) -> str:
    """`Allocated gpu-0000-18-00-0 on node-a: the fullest node that still fits: ...`."""
    return f"Allocated {devices(found)} on {found.node}: {found.explanation}"


def devices(found: allocator_types.Placement) -> str:
    """`gpu-0000-18-00-0, gpu-0000-3b-00-0-mps (memory 20Gi, compute 25)`."""
    return ", ".join(_assigned_device(pick) for pick in found.assignments)


def _assigned_device(pick: allocator_types.DeviceAssignment) -> str:
    """Its name, and of a share how much: `gpu-0000-18-00-0-mps (memory 20Gi, compute 25)`."""
    if not pick.shared:
        return pick.device.device
    parts = ", ".join(f"{name} {amount.text}" for name, amount in pick.result.consumed.items())
    return f"{pick.device.device} ({parts})" if parts else pick.device.device


def unschedulable(answer: allocator_types.Unschedulable) -> str:
    """Per node how many devices fit and what was lacking; equal nodes are told together."""
    if answer.blocker is not None:
        return f"{answer.blocker}: {answer.detail}"
    if not answer.rejections:
        return "No node publishes devices of this driver"
    lines = [
        f"{_node_names(names)}: {node_rejection(refusal)}"
        for refusal, names in answer.rejections.items()
    ]
    return "No node fits. " + "; ".join(lines)


def unschedulable_on_node(answer: allocator_types.Unschedulable) -> str:
    """A refusal where a single node counts: `0 of 1 devices fit, 1 lacking (1 DeviceTaken)`."""
    if answer.blocker is not None or not answer.rejections:
        return unschedulable(answer)
    return "; ".join(map(node_rejection, answer.rejections))


def _node_names(names: Sequence[ids.NodeName]) -> str:
    if len(names) <= _MAX_NODES:
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_NODES])} and {len(names) - _MAX_NODES} more"


def node_rejection(refusal: allocator_types.NodeRejection) -> str:
    """Why one node does not do."""
    if refusal.node_reason is not None:
        return f"{refusal.node_reason} ({refusal.detail})"
    text = f"{refusal.fits} of {refusal.requested} devices fit"
    lacking = refusal.requested - refusal.fits
    counted = _reason_counts(refusal.device_reasons)
    if refusal.budget_exceeded:
        why = "the search for a combination took too many steps"
        return f"{reasons.Reason.SEARCH_GIVEN_UP} ({why}): {text}{counted}"
    if not lacking:
        return f"{text}, and no combination of them does{counted}"
    return f"{text}, {lacking} lacking{counted}"


def _reason_counts(found: allocator_types.ReasonCounts) -> str:
    if not found:
        return ""
    # Other faces than those asked for are many, and no news beside what keeps the others away.
    telling = [one for one in found if one[0] is not reasons.Reason.SELECTOR_MISMATCH] or found
    return " (" + ", ".join(f"{count} {reason}" for reason, count in telling) + ")"
