"""Answers in words, for events and conditions (D19). Pure."""

from collections import Counter

from driver import reasons
from driver.controller.allocation import outcome

_MAX_NODES = 8


def placement(found: outcome.Placement) -> str:
    """`Allocated gpu-0000-18-00-0 on node-a: the fullest node that still fits: ...`."""
    devices = ", ".join(pick.device.device for pick in found.picks)
    return f"Allocated {devices} on {found.node}: {found.why}"


def no_fit(answer: outcome.NoFit) -> str:
    """Per node how many devices fit and what was lacking; equal nodes are told together."""
    if answer.blocker is not None:
        return f"{answer.blocker}: {answer.detail}"
    if not answer.nodes:
        return "No node publishes devices of this driver"
    told: dict[str, list[str]] = {}
    for refusal in answer.nodes:
        told.setdefault(_node(refusal), []).append(refusal.node)
    lines = [f"{_several(names)}: {what}" for what, names in told.items()]
    return "No node fits. " + "; ".join(lines)


def _several(names: list[str]) -> str:
    if len(names) <= _MAX_NODES:
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_NODES])} and {len(names) - _MAX_NODES} more"


def _node(refusal: outcome.NodeRefusal) -> str:
    if refusal.node_reason is not None:
        return f"{refusal.node_reason} ({refusal.detail})"
    text = f"{refusal.fits} of {refusal.wanted} devices fit"
    lacking = refusal.wanted - refusal.fits
    return f"{text}, {lacking} lacking{_counted(refusal.devices)}"


def _counted(found: Counter[reasons.Reason]) -> str:
    if not found:
        return ""
    return " (" + ", ".join(f"{count} {reason}" for reason, count in sorted(found.items())) + ")"
