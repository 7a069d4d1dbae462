"""Complete explanations for programs; events have one sentence. Pure.

Values are plain JSON. Scores are the policies', 0 to 100; memory is in bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import messages, nearest_fit

Result = allocator_types.Placement | allocator_types.Unschedulable


@dataclass(frozen=True, slots=True)
class Explanation:
    """The last result of a pod, at a `time` (RFC 3339), with the nearest fit if it is known."""

    pod: ids.Key
    time: str
    result: Result
    nearest: nearest_fit.NearestFit | None = None
    text: str = ""
    """Message of a refusal, with its additions."""

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        document: dict[str, Any] = {"pod": self.pod, "at": self.time}
        if isinstance(self.result, allocator_types.Placement):
            devices = [pick.device._asdict() for pick in self.result.assignments]
            document |= {"node": self.result.node, "devices": devices}
            return document | placement_document(self.result)
        near = {"nearest": nearest_document(self.nearest)} if self.nearest else {}
        return document | unschedulable_document(self.result) | near


def placement_document(placement: allocator_types.Placement) -> dict[str, Any]:
    """Return the explanation, and the best nodes, the chosen one first."""
    return {
        "why": placement.explanation,
        "considered": [
            {
                "node": scored_node.node,
                "scores": dict(scored_node.scores),
                **({"alternative": scored_node.alternative} if scored_node.alternative else {}),
                **({"memory": scored_node.memory} if scored_node.memory else {}),
            }
            for scored_node in placement.scored_nodes
        ],
    }


def unschedulable_document(unschedulable: allocator_types.Unschedulable) -> dict[str, Any]:
    """Return the blocker of every node, or nodes by rejection."""
    if unschedulable.blocker is not None:
        return {"reason": unschedulable.blocker.value, "detail": unschedulable.detail}
    return {"refusals": [*_rejection_documents(unschedulable)]}


def nearest_document(near: nearest_fit.NearestFit) -> dict[str, Any]:
    """Return the nearest fit. `ever` false: no node would fit even if it were empty."""
    return {
        "node": near.node,
        "summary": messages.nearest_fit_message(near),
        "ever": near.can_ever_fit,
        "leaving": [*near.leaving],
        "allSeen": near.is_exhaustive,
    }


def _rejection_documents(unschedulable: allocator_types.Unschedulable) -> Iterator[dict[str, Any]]:
    for rejection, names in unschedulable.rejections.items():
        yield {"nodes": [*names], **_rejection_document(rejection)}


def _rejection_document(rejection: allocator_types.NodeRejection) -> dict[str, Any]:
    if rejection.node_reason is not None:
        return {"reason": rejection.node_reason.value, "detail": rejection.detail}
    counted = {reason.value: count for reason, count in rejection.device_reasons}
    given_up = {"gaveUp": True} if rejection.budget_exceeded else {}
    return {"fits": rejection.fits, "wanted": rejection.requested, "devices": counted, **given_up}
