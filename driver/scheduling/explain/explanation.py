"""Why, in full, for programs, where events say it in a sentence. Pure.

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
    """The last answer to a pod, `at` a time (RFC 3339), with the nearest fit where it is known."""

    pod: ids.Key
    time: str
    result: Result
    nearest: nearest_fit.NearestFit | None = None
    text: str = ""
    """A refusal in words, with all that is said beside it."""

    def document(self) -> dict[str, Any]:
        """All of it."""
        made: dict[str, Any] = {"pod": self.pod, "at": self.time}
        if isinstance(self.result, allocator_types.Placement):
            devices = [pick.device._asdict() for pick in self.result.assignments]
            made |= {"node": self.result.node, "devices": devices}
            return made | placement_document(self.result)
        near = {"nearest": nearest_document(self.nearest)} if self.nearest else {}
        return made | unschedulable_document(self.result) | near


def placement_document(found: allocator_types.Placement) -> dict[str, Any]:
    """The reason, and the best nodes there were, the chosen one first."""
    return {
        "why": found.explanation,
        "considered": [
            {
                "node": one.node,
                "scores": dict(one.scores),
                **({"alternative": one.alternative} if one.alternative else {}),
                **({"memory": one.memory} if one.memory else {}),
            }
            for one in found.scored_nodes
        ],
    }


def unschedulable_document(answer: allocator_types.Unschedulable) -> dict[str, Any]:
    """What holds on every node, or what each node lacks, those together that lack the same."""
    if answer.blocker is not None:
        return {"reason": answer.blocker.value, "detail": answer.detail}
    return {"refusals": [*_rejection_documents(answer)]}


def nearest_document(near: nearest_fit.NearestFit) -> dict[str, Any]:
    """Where it comes nearest. `ever` false: no node would do even with nothing on it."""
    return {
        "node": near.node,
        "summary": messages.nearest_fit_message(near),
        "ever": near.can_ever_fit,
        "leaving": [*near.leaving],
        "allSeen": near.is_exhaustive,
    }


def _rejection_documents(answer: allocator_types.Unschedulable) -> Iterator[dict[str, Any]]:
    for refusal, names in answer.rejections.items():
        yield {"nodes": [*names], **_rejection_document(refusal)}


def _rejection_document(one: allocator_types.NodeRejection) -> dict[str, Any]:
    if one.node_reason is not None:
        return {"reason": one.node_reason.value, "detail": one.detail}
    counted = {reason.value: count for reason, count in one.device_reasons}
    given_up = {"gaveUp": True} if one.budget_exceeded else {}
    return {"fits": one.fits, "wanted": one.requested, "devices": counted, **given_up}
