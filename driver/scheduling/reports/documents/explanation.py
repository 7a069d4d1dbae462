"""Why a pod is where it is, or is nowhere, as a document. Pure."""

from collections.abc import Callable, Iterator

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explanation, nearest_fit
from driver.scheduling.explain import messages as explain_messages
from driver.scheduling.reports import model

Answers = Callable[[ids.Key], explanation.Explanation | None]
_MOST_NAMED = 8
_MOST_REFUSALS = 50


def by(answers: Answers) -> Callable[[ids.Key], model.Explanation | None]:
    """The decider's answer to a pod as a document."""

    def explain(pod: ids.Key) -> model.Explanation | None:
        found = answers(pod)
        if found is None:
            return None
        return of(found.result, found.time, found.nearest).model_copy(
            update={"message": found.text}
        )

    return explain


def of(
    answer: explanation.Result, at: str, near: nearest_fit.NearestFit | None = None
) -> model.Explanation:
    """An answer of the allocator's at a time (RFC 3339), with the nearest fit."""
    if isinstance(answer, allocator_types.Placement):
        return model.Explanation(
            at=at,
            why=answer.explanation,
            node=answer.node,
            considered=tuple(
                model.Considered(node=one.node, scores=dict(one.scores))
                for one in answer.scored_nodes
            ),
        )
    return model.Explanation(
        at=at,
        reason=answer.blocker.value if answer.blocker else "",
        detail=answer.detail,
        refusals=tuple(_refusals(answer))[:_MOST_REFUSALS],
        nearest=_nearest(near) if near else None,
    )


def _refusals(answer: allocator_types.Unschedulable) -> Iterator[model.Refusal]:
    """Those of the most nodes first."""
    for one, found in sorted(
        answer.rejections.items(), key=lambda item: (-len(item[1]), item[1][0])
    ):
        yield model.Refusal(
            count=len(found),
            nodes=tuple(found[:_MOST_NAMED]),
            reason=one.node_reason.value if one.node_reason else "",
            detail=one.detail,
            fits=one.fits,
            wanted=one.requested,
            devices={reason.value: count for reason, count in one.device_reasons},
            gave_up=one.budget_exceeded,
        )


def _nearest(near: nearest_fit.NearestFit) -> model.Nearest:
    return model.Nearest(
        node=near.node,
        summary=explain_messages.nearest_fit_message(near),
        ever=near.can_ever_fit,
        leaving=tuple(near.leaving),
    )
