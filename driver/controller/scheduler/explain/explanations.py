"""Explanations of refusals: holders, nearest fit, queue; and the last one of each pod."""

from driver import clock
from driver.controller.scheduler import pending, state
from driver.controller.scheduler.explain import holder_names, queue_notes
from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer, nearest_fit
from driver.scheduling.explain import messages as explain_messages
from driver.scheduling.snapshot import snapshot


class Explanations:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        fits: explainer.FitExplainer,
        holders: holder_names.HolderNames,
        notes: queue_notes.QueueNotes,
    ) -> None:
        self._context = context
        self._explainer = fits
        self._holders = holders
        self._notes = notes

    def find_nearest(
        self, workload: allocator_types.Workload, answer: allocator_types.Unschedulable
    ) -> nearest_fit.NearestFit | None:
        """Return the nearest fit; deferred, and the pod noted, where it takes too long now."""
        if answer.blocker is not None:
            return None
        uid = workload.pod.uid
        if not self._explainer.can_explain(self._context.view, workload):
            self._context.memory.unadvised.add(uid)
            return None
        self._context.memory.unadvised.discard(uid)
        return self.nearest(workload, answer, self._context.view)

    def nearest(
        self,
        workload: allocator_types.Workload,
        answer: allocator_types.Unschedulable,
        view: snapshot.Snapshot,
    ) -> nearest_fit.NearestFit | None:
        """Return the nearest fit in a view, however long it takes."""
        return (
            None if answer.blocker is not None else self._explainer.explain(view, workload, answer)
        )

    def describe(
        self,
        answer: allocator_types.Unschedulable,
        near: nearest_fit.NearestFit | None,
        candidate: pending.PendingWorkload | None = None,
        view: snapshot.Snapshot | None = None,
    ) -> str:
        """Return sentences beside a refusal: holders, nearest fit, queue and plan."""
        node = near.node if near is not None else None
        parts = (
            self._holders.describe_rejection(view or self._context.view, answer, node),
            explain_messages.nearest_fit_message(near) if near is not None else "",
            self.note(candidate),
        )
        return ". ".join(part for part in parts if part)

    def note(self, candidate: pending.PendingWorkload | None) -> str:
        """Return sentences on the queue of a workload, and on a plan for it or in its way."""
        return self._notes.describe(candidate) if candidate is not None else ""

    def record(
        self,
        pod: pods.Pod,
        answer: explainer.Result,
        near: nearest_fit.NearestFit | None = None,
        text: str = "",
    ) -> explainer.Explanation:
        """Record an answer in full, for readers."""
        now = clock.rfc3339(self._context.clock.now())
        full = explainer.Explanation(pod.key, now, answer, near, text)
        self._context.memory.explanations[pod.uid] = full
        return full
