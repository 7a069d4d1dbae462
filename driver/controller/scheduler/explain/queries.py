"""Explanations for readers (`explain`, the page, the JSON API), computed for the current view.

Any thread requests; the decider resolves between two cycles, once for all requests of one pod.
"""

import threading
from collections.abc import Callable
from concurrent import futures
from dataclasses import replace

from driver import ids, reasons
from driver.controller.commit import write_pool
from driver.controller.scheduler import pending, state
from driver.controller.scheduler.explain import explanations, in_flight
from driver.kube import workqueue
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer
from driver.scheduling.explain import messages as whatif_words
from driver.scheduling.gangs import messages as seating_words
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.lifecycle import backfill_plan, bound_pods
from driver.scheduling.reports import bound_pod_refusal
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

KIND = "explain"
"""Items of pods that somebody asks about."""
PATIENCE_S = 2.0
"""Readers wait so long for the decider; then they get the last answer, with its time."""
PendingExplanation = futures.Future[explainer.Explanation | None]


class ExplainQueries:
    """`request` from any thread, `resolve` on the decider's. One answer costs one decision."""

    def __init__(
        self,
        shared: state.SchedulerContext,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        explained: explanations.Explanations,
        claims_now: in_flight.InFlightClaims,
        plan: Callable[[], backfill_plan.BackfillPlan | None],
    ) -> None:
        self._context = shared
        self._items = items
        self._explanations = explained
        self._claims = claims_now
        self._plan = plan
        self._lock = threading.Lock()
        self._requests: dict[ids.Key, PendingExplanation] = {}

    def request(self, pod: ids.Key) -> PendingExplanation:
        """Return the future explanation; None in it: the pod is not decided for here."""
        with self._lock:
            answer = self._requests.setdefault(pod, futures.Future())
        self._items.add(write_pool.WorkItem(KIND, pod))
        return answer

    def resolve(self, pod: ids.Key) -> None:
        """Resolve the request of a pod."""
        with self._lock:
            answer = self._requests.pop(pod, None)
        if answer is None:
            return
        full = self.last_explanation(pod)
        try:
            full = self._explain(pod)
        finally:
            answer.set_result(full)

    def explain_now(self, pod: ids.Key) -> explainer.Explanation | None:
        """Return a pod's explanation; not on the decider's thread. Blocks up to `PATIENCE_S`."""
        try:
            return self.request(pod).result(PATIENCE_S)
        except futures.TimeoutError:
            return self.last_explanation(pod)

    def last_explanation(self, pod: ids.Key) -> explainer.Explanation | None:
        """Return the last explanation of a pod; from any thread."""
        uid = self._context.memory.uids.get(pod)
        return None if uid is None else self._context.memory.explanations.get(uid)

    def _explain(self, pod: ids.Key) -> explainer.Explanation | None:
        self._context.refresh_view()
        refused = self._explain_bound(pod)
        if refused is not None:
            return refused
        candidate = self._candidate(pod)
        if candidate is None:
            return self.last_explanation(pod)
        view = self._view_for(candidate)
        if candidate.gang is not None:
            return self._explain_gang(pod, candidate, view)
        work = self._with_avoided_nodes(candidate.workloads[0])
        refusal = dra_allocator.allocate(view, work, self._context.settings.allocator)
        if isinstance(refusal, allocator_types.Placement):
            return self._explain_unplaced(work)
        near = self._explanations.nearest(work, refusal, view)
        rest = self._explanations.describe(refusal, near, candidate, view)
        text = whatif_words.join_sentence(allocator_messages.unschedulable(refusal), rest)
        return self._explanations.record(work.pod, refusal, near, text)

    def _explain_bound(self, key: ids.Key) -> explainer.Explanation | None:
        """Explain a pod that is bound where its claims are not allocated, for its own node."""
        memory, pod = self._context.memory, self._context.stores.pods.get(key)
        since = memory.astray.get(pod.uid) if pod is not None else None
        if pod is None or since is None or pod.uid in memory.in_flight:
            return None
        if self._context.clock.monotonic() < since + bound_pods.GRACE_S:
            return None
        refused = self._bound_refusals().refusal(pod)
        if refused is None:
            return None
        if (
            refused.has_free_devices
            and memory.pending_reasons.get(pod.uid) is reasons.Reason.QUEUE_LIMIT_EXCEEDED
        ):
            limited = memory.messages.get(pod.uid, "")
            limit = allocator_types.Unschedulable(reasons.Reason.QUEUE_LIMIT_EXCEEDED, limited)
            return self._explanations.record(pod, limit, text=limited)
        rest = self._explanations.describe(refused.result, refused.nearest)
        text = whatif_words.join_sentence(refused.text, rest)
        return self._explanations.record(pod, refused.result, refused.nearest, text)

    def _bound_refusals(self) -> bound_pod_refusal.RefusalReader:
        return bound_pod_refusal.RefusalReader(
            self._context.view,
            self._context.settings.allocator,
            self._claims.claim,
            self._context.stores.pods.get,
            self._context.owners,
        )

    def _candidate(self, pod: ids.Key) -> pending.PendingWorkload | None:
        """Return the pending pod, or its gang."""
        waiting = self._context.memory.waiting
        single = waiting.get(write_pool.WorkItem("pod", pod))
        if single is not None:
            return single
        uid = self._context.memory.uids.get(pod)
        if uid is None or uid not in self._context.memory.messages:
            return None
        return next((gang for gang in waiting.values() if gang and _is_in(uid, gang)), None)

    def _view_for(self, candidate: pending.PendingWorkload) -> snapshot.Snapshot:
        """Return the view that the workload's own turn sees."""
        plan = self._plan()
        if plan is None or candidate.item != write_pool.WorkItem(plan.kind, plan.key):
            return self._context.view
        return reservation_overlay.WithoutReservations(self._context.view, [backfill_plan.KEY])

    def _with_avoided_nodes(self, work: allocator_types.Workload) -> allocator_types.Workload:
        return replace(work, avoided_nodes=self._context.avoided_nodes(work.pod))

    def _explain_gang(
        self, pod: ids.Key, candidate: pending.PendingWorkload, view: snapshot.Snapshot
    ) -> explainer.Explanation | None:
        works = [self._with_avoided_nodes(work) for work in candidate.workloads]
        answer = gang_placement.place_gang(
            works, view, candidate.topology, self._context.settings.allocator
        )
        mine = next((work for work in works if work.pod.key == pod), works[0])
        if isinstance(answer, gang_types.GangPlacement) or candidate.gang is None:
            return self._explain_unplaced(mine)
        why = seating_words.gang_unschedulable(answer, candidate.topology)
        text = f"gang {candidate.gang.key}: {why}"
        text = whatif_words.join_sentence(text, self._explanations.note(candidate))
        return self._explanations.record(
            mine.pod, allocator_types.Unschedulable(reasons.Reason.NO_FIT, text), text=text
        )

    def _explain_unplaced(self, work: allocator_types.Workload) -> explainer.Explanation | None:
        """Explain a workload that would fit: another cause, such as its queue's limit."""
        memory = self._context.memory
        why, text = memory.pending_reasons.get(work.pod.uid), memory.messages.get(work.pod.uid, "")
        if why is None or why is reasons.Reason.NO_FIT:
            self._items.add(write_pool.WAKE)
            return self.last_explanation(work.pod.key)
        return self._explanations.record(work.pod, allocator_types.Unschedulable(why, text))


def _is_in(uid: ids.PodUid, candidate: pending.PendingWorkload) -> bool:
    return any(work.pod.uid == uid for work in candidate.workloads)
