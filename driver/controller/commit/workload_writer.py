"""Writer of what follows from decisions: on pods, their claims, and nodes; on the write pool."""

from collections.abc import Callable

import structlog

from driver import ids, reasons
from driver.controller import metrics as controller_metrics
from driver.controller.commit import allocations, reporter, write_pool
from driver.resources.core import nodes, pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold

_log = structlog.get_logger(__name__)


class WorkloadWriter:
    """Thread safe. Calls return at once; a refused write brings its item back to the queue."""

    def __init__(
        self,
        pool: write_pool.WritePool,
        writer: allocations.AllocationWriter,
        reports: reporter.Reporter,
        metrics: controller_metrics.Metrics,
    ) -> None:
        self._pool = pool
        self._writer = writer
        self._reporter = reports
        self._metrics = metrics

    def clear(self, pod_claims: tuple[claims.Claim, ...]) -> None:
        """Take allocations back whose pods are gone."""
        for claim in pod_claims:
            self._submit(claim, self._writer.clear)

    def release(self, pod: pods.Pod, held: tuple[claims.Claim, ...]) -> None:
        """Clear an unbound pod's allocations; those that it has reserved lose the pod first.

        What changes then brings the pod back, for the rest.
        """
        reserved = tuple(claim for claim in held if allocation_hold.is_reserved_by(claim, pod))
        self.unreserve_pod(pod, reserved)
        for claim in held:
            if not allocation_hold.is_reserved(claim):
                self._submit(claim, lambda waiting: self._writer.clear_unbound(waiting, pod))

    def release_refused(self, pod: pods.Pod, held: tuple[claims.Claim, ...], message: str) -> None:
        """Clear allocations by which kube-scheduler refused a pod, and report it."""
        self._reporter.event(pod, held, reasons.Reason.ALLOCATION_CLEARED, message)
        self._metrics.count_decision("taken_back")
        self.release(pod, held)

    def clear_bound(self, pod: pods.Pod, astray: tuple[claims.Claim, ...], message: str) -> None:
        """Take allocations back whose only pod is bound to another node, and report it."""
        self._reporter.event(pod, astray, reasons.Reason.ALLOCATION_CLEARED, message)
        self._metrics.count_decision("repaired")
        for claim in astray:
            self._submit(claim, self._writer.clear_bound)

    def unreserve_pod(self, pod: pods.Pod, reserved: tuple[claims.Claim, ...]) -> None:
        """Take an unbound pod out of the reservedFor of its claims."""
        for claim in reserved:
            self._submit(claim, lambda held: self._writer.unreserve_pod(held, pod))

    def drop_holds(self, claim: claims.Claim, holds: tuple[claims.Consumer, ...]) -> None:
        """Remove holds that have served."""
        self._submit(claim, lambda current: self._writer.drop_holds(current, holds))

    def set_gang_condition(self, claim: claims.Claim, failed: str, now: str) -> None:
        """Write on a claim that its gang is ready to be bound, or why it was released."""
        self._submit(claim, lambda current: self._writer.set_gang_condition(current, failed, now))

    def set_node_condition(self, node: nodes.Node, condition: nodes.GpuCondition, now: str) -> None:
        """Write a Node's GPU condition."""
        body = nodes.render_gpu_condition(condition, node.gpu_condition, now)
        item = write_pool.WorkItem("node", ids.Key(node.name))
        self._pool.submit(item, lambda: self._writer.patch_node_condition(node, body))

    def ungate(self, pod: pods.Pod) -> None:
        """Let kube-scheduler have a pod: remove our scheduling gate."""
        item = write_pool.WorkItem("pod", pod.key)
        self._pool.submit(item, lambda: self._writer.ungate(pod))

    def retry_prepare(self, claim: claims.Claim, pod: pods.Pod, stamp: str) -> None:
        """Have the kubelet prepare a pod's claims again; the refusal was cleared at `stamp`."""
        self._submit(claim, lambda _: self._nudge(pod, stamp))

    def _nudge(self, pod: pods.Pod, stamp: str) -> None:
        self._writer.retry_prepare(pod, stamp)
        self._metrics.count_decision("nudged")
        _log.info("kubelet asked to try again", pod=pod.key, cleared=stamp)

    def evict_user(self, claim: claims.Claim, pod: pods.Pod, message: str) -> None:
        """Evict a pod for the state of a claim; the claim is looked at again if refused."""
        item = write_pool.WorkItem("claim", claim.key)
        self.evict(item, pod, (claim,), reasons.Reason.POD_EVICTED, message)

    def evict(
        self,
        item: write_pool.WorkItem,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Evict a pod and report the reason on it and its claims; `item` is retried if refused."""

        def write() -> None:
            self._writer.evict(pod)
            self._metrics.count_eviction(reason)
            _log.info("pod evicted", pod=pod.key, why=message)
            self._reporter.event(pod, pod_claims, reason, message)

        self._pool.submit(item, write)

    def _submit(self, claim: claims.Claim, act: Callable[[claims.Claim], None]) -> None:
        self._pool.submit(write_pool.WorkItem("claim", claim.key), lambda: act(claim))
