"""Explanations of pods as documents. Pure."""

from collections.abc import Callable, Iterator

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer, nearest_fit
from driver.scheduling.explain import messages as explain_messages
from driver.scheduling.reports import model

FindExplanation = Callable[[ids.Key], explainer.Explanation | None]
_MAX_NAMED = 8
_MAX_REFUSALS = 50


def explain_by(answers: FindExplanation) -> Callable[[ids.Key], model.Explanation | None]:
    """Return a lookup of the scheduler's last result for a pod as a document."""

    def explain(pod: ids.Key) -> model.Explanation | None:
        answer = answers(pod)
        if answer is None:
            return None
        return explanation_document(answer.result, answer.time, answer.nearest).model_copy(
            update={"message": answer.text}
        )

    return explain


def explanation_document(
    answer: explainer.Result, timestamp: str, nearest: nearest_fit.NearestFit | None = None
) -> model.Explanation:
    """Return a result of the allocator at a time (RFC 3339), with the nearest fit."""
    if isinstance(answer, allocator_types.Placement):
        return model.Explanation(
            at=timestamp,
            why=answer.explanation,
            node=answer.node,
            considered=tuple(
                model.Considered(node=scored_node.node, scores=dict(scored_node.scores))
                for scored_node in answer.scored_nodes
            ),
        )
    return model.Explanation(
        at=timestamp,
        reason=answer.blocker.value if answer.blocker else "",
        detail=answer.detail,
        refusals=tuple(_refusals(answer))[:_MAX_REFUSALS],
        nearest=_nearest(nearest) if nearest else None,
    )


def _refusals(answer: allocator_types.Unschedulable) -> Iterator[model.Refusal]:
    """Yield rejections, those of the most nodes first."""
    for rejection, node_names in sorted(
        answer.rejections.items(), key=lambda item: (-len(item[1]), item[1][0])
    ):
        yield model.Refusal(
            count=len(node_names),
            nodes=tuple(node_names[:_MAX_NAMED]),
            reason=rejection.node_reason.value if rejection.node_reason else "",
            detail=rejection.detail,
            fits=rejection.fits,
            wanted=rejection.requested,
            devices={reason.value: count for reason, count in rejection.device_reasons},
            gave_up=rejection.budget_exceeded,
        )


def _nearest(near: nearest_fit.NearestFit) -> model.Nearest:
    return model.Nearest(
        node=near.node,
        summary=explain_messages.nearest_fit_message(near),
        ever=near.can_ever_fit,
        leaving=tuple(near.leaving),
    )
