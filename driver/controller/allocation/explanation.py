"""Why, in full, for programs, where events say it in a sentence. Pure.

Values are plain JSON. Scores are the policies', 0 to 100; memory is in bytes.
"""

from collections.abc import Iterator
from typing import Any

from driver.controller.allocation import outcome


def of_placement(found: outcome.Placement) -> dict[str, Any]:
    """The reason, and the best nodes there were, the chosen one first."""
    return {
        "why": found.why,
        "considered": [
            {
                "node": one.node,
                "scores": dict(one.scores),
                **({"alternative": one.way} if one.way else {}),
                **({"memory": one.memory} if one.memory else {}),
            }
            for one in found.considered
        ],
    }


def of_no_fit(answer: outcome.NoFit) -> dict[str, Any]:
    """What holds on every node, or what each node lacks, those together that lack the same."""
    if answer.blocker is not None:
        return {"reason": answer.blocker.value, "detail": answer.detail}
    return {"refusals": [*_refusals(answer)]}


def _refusals(answer: outcome.NoFit) -> Iterator[dict[str, Any]]:
    for refusal, names in answer.nodes.items():
        yield {"nodes": [*names], **_refusal(refusal)}


def _refusal(one: outcome.Refusal) -> dict[str, Any]:
    if one.node_reason is not None:
        return {"reason": one.node_reason.value, "detail": one.detail}
    counted = {reason.value: count for reason, count in one.devices}
    given_up = {"gaveUp": True} if one.given_up else {}
    return {"fits": one.fits, "wanted": one.wanted, "devices": counted, **given_up}
