"""Repairs pods that are bound away from their claims; `lifecycle.bound_pods` decides (ADR 18)."""

from driver import ids, reasons
from driver.controller.commit import workload_writer, write_pool
from driver.controller.scheduler import pending, results, state
from driver.controller.scheduler.explain import pending_reporter
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.lifecycle import actions, bound_pods, eviction_backoff
from driver.scheduling.reports import bound_pod_refusal
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

_RETRY_S = 1.0
_NO_SECOND_POD = frozenset({"DaemonSet", "Node"})
"""Owners whose next pod is for the same node (of a static pod: the mirror of the node's own)."""


class BoundPods:
    """Pods with a node whose claims have no allocation, or one on another node."""

    def __init__(
        self,
        context: state.SchedulerContext,
        writers: workload_writer.WorkloadWriter,
        outcomes: results.ResultHandler,
        reporter: pending_reporter.PendingReporter,
    ) -> None:
        self._context = context
        self._writers = writers
        self._results = outcomes
        self._reporter = reporter
        self._pacing = eviction_backoff.EvictionBackoff()

    def reconcile(
        self, item: write_pool.WorkItem, pod: pods.Pod, held: tuple[claims.Claim, ...]
    ) -> pending.PendingWorkload | float | None:
        """Return the workload if claims are to be allocated on its node; else do what is due.

        A number is the seconds until the next reconcile.
        """
        due = self._reconcile(item, pod, held)
        if not isinstance(due, pending.PendingWorkload):
            self._context.memory.waiting.pop(item, None)
            self._reporter.allocated(pod, held)
        return due

    def schedule(self, candidate: pending.PendingWorkload) -> pending.ScheduleResult:
        """Allocate on the pod's own node, or report why not."""
        (workload,) = candidate.workloads
        only, allocator = [ids.NodeName(str(workload.pod.node))], self._context.settings.allocator
        view = reservation_overlay.WithoutReservations(self._context.view, (), only)
        answer = dra_allocator.allocate(view, workload, allocator)
        if isinstance(answer, allocator_types.Placement):
            if self._results.place(candidate, workload, answer):
                return pending.ScheduleResult.PLACED
        else:
            message = allocator_messages.unschedulable_on_node(answer)
            self._give_up(workload.pod, workload.open_claims, message)
        return pending.ScheduleResult.STRANDED

    def try_on_view(self, _candidate: pending.PendingWorkload, _view: snapshot.Snapshot) -> bool:
        """Return False: a bound pod may have nothing but what its own node has."""
        return False

    def _reconcile(
        self, item: write_pool.WorkItem, pod: pods.Pod, held: tuple[claims.Claim, ...]
    ) -> pending.PendingWorkload | float | None:
        node = self._context.refresh_view().nodes.get(pod.node) if pod.node is not None else None
        mine = bound_pod_refusal.managed_claims(self._context.view, self._context.owners, held)
        due = bound_pods.binding_state(pod, mine, node)
        if isinstance(due, bound_pods.Consistent):
            self._context.memory.astray.pop(pod.uid, None)
            return None
        now, stale = self._context.clock.monotonic(), self._context.is_stale()
        left_s = self._context.memory.astray.setdefault(pod.uid, now) + bound_pods.GRACE_S - now
        if left_s > 0 or stale:
            return max(left_s, actions.STALE_RETRY_S if stale else 0.0)
        if node is None:
            self._report(
                pod, held, reasons.Reason.NODE_NOT_FOUND, bound_pods.unknown_node_message(pod)
            )
            return None
        match due:
            case bound_pods.Blocked(claim=claim) as blocked:
                return self._give_up(pod, (claim,), bound_pods.misplaced_message(blocked))
            case bound_pods.Misplaced(claims=astray):
                self._clear(pod, astray)
                return _RETRY_S
            case bound_pods.Unallocated():
                return self._candidate(item, pod, due)

    def _candidate(
        self, item: write_pool.WorkItem, pod: pods.Pod, due: bound_pods.Unallocated
    ) -> pending.PendingWorkload | None:
        if self._context.is_writing(due.open_claims):
            return None  # its end brings the pod back
        workload = allocator_types.Workload(
            pod, due.open_claims, due.allocated_claims, is_bound=True
        )
        return pending.PendingWorkload(item, (workload,))

    def _clear(self, pod: pods.Pod, astray: tuple[claims.Claim, ...]) -> None:
        elsewhere = ", ".join(sorted({str(snapshot.pinned_node(claim)) for claim in astray}))
        words = f"Freed the devices on {elsewhere}: the pod is bound to {pod.node}"
        self._writers.clear_bound(pod, astray, words)

    def _give_up(self, pod: pods.Pod, held: tuple[claims.Claim, ...], words: str) -> float | None:
        """Tell that a pod's claims cannot be had where it is; evict it where that helps.

        A pod that kube-scheduler bound gets another from its owner, at the owner's pace; one that
        names its node itself would meet the same again. Returns the seconds until the next eviction
        is allowed, None where there will be none.
        """
        self._report(
            pod,
            held,
            reasons.Reason.POD_BOUND_TO_OTHER_NODE,
            bound_pods.bound_pod_message(pod, words),
        )
        owner = pod.owner
        scheduled = pod.uid in self._context.memory.unbound
        if owner is None or owner.kind in _NO_SECOND_POD or not (scheduled and held):
            return None
        now = self._context.clock.monotonic()
        left_s = self._pacing.remaining_s(owner.uid, now)
        if left_s <= 0:
            self._pacing.record_eviction(owner.uid, now)
            text = f"Evicted, so that {owner.kind} {owner.name} makes another: {words}"
            self._writers.evict_user(held[0], pod, text)
            left_s = self._pacing.remaining_s(owner.uid, now)
        return left_s

    def _report(
        self, pod: pods.Pod, held: tuple[claims.Claim, ...], reason: reasons.Reason, words: str
    ) -> None:
        if self._context.memory.messages.get(pod.uid) != words:
            self._reporter.report(pod, held, reason, words)
