"""Many writers: the decider's decisions, written on a pool (D4). Outcomes go back as values."""

import queue
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from driver import errors, ids, reasons
from driver.controller import metrics, ports
from driver.controller.commit import allocations as commit_allocations
from driver.controller.commit import events
from driver.kube import backoff, workqueue
from driver.resources.core import nodes, pods
from driver.resources.dra import claims
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import allocation_hold

_log = structlog.get_logger(__name__)


class WorkItem(NamedTuple):
    """A key to look at: `kind` is `pod`, `gang`, `claim`, `reservation`, `node`, `faults` on one.

    `marks` are those of a node (`provisioning.marks`).

    All of a kind are `nodes`, `queues`, and `wake`: all that waits.
    """

    kind: str
    key: ids.Key


RETRIES = backoff.Pace(base_s=0.05, max_s=10.0)
"""After a failure. The longest wait is that of kube-scheduler's queue (podMaxBackoffSeconds): what
is in the way, such as a server that is away, does not get better by a pod's waiting a minute more.
"""
WAKE = WorkItem("wake", ids.Key(""))
"""Look at every waiting pod again."""
QUEUES = WorkItem("queues", ids.Key(""))
"""Look at how queues stand."""
NODES = WorkItem("nodes", ids.Key(""))
"""Look at every node's condition again."""
PROVISIONING = WorkItem("provisioning", ids.Key(""))
"""Look whether nodes are to be asked for."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A placement to write, and what is written of it, by claim.

    `doubtful`: an earlier try got no answer, so a refusal of this one says nothing of that.
    """

    workload: allocator_types.Workload
    placement: allocator_types.Placement
    allocations: Mapping[ids.Key, claims.Allocation]
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The end of an allocation's writes: `error` None when every claim is written."""

    item: WorkItem
    decision: Decision
    error: Exception | None

    @property
    def pod(self) -> pods.Pod:
        """Pod whose claims were written."""
        return self.decision.workload.pod

    @property
    def in_doubt(self) -> bool:
        """Return whether part of the decision may be written although no answer came.

        A conflict ends every doubt: the claims were read again, and no earlier write can come.
        """
        if self.error is None or isinstance(self.error, errors.Conflict | errors.NotFound):
            return False
        return self.decision.doubtful or commit_allocations.is_in_doubt(self.error)


@dataclass(frozen=True, slots=True)
class WriteDeps:
    """Dependencies of the writers."""

    writer: ports.Writer
    commit: commit_allocations.AllocationWriter
    pool: futures.Executor
    reporter: events.EventReporter
    metrics: metrics.Metrics


class WritePool:
    """Thread safe. Every call returns at once; the item comes back to the queue when it is due."""

    def __init__(self, tools: WriteDeps, items: workqueue.WorkQueue[WorkItem]) -> None:
        self._deps = tools
        self._items = items
        self._written: queue.SimpleQueue[WriteResult] = queue.SimpleQueue()

    def drain_results(self) -> Iterator[WriteResult]:
        """Yield the results since the last call.

        Raises:
            Exception: a programming error on the pool; re-raised on the decider's thread.
        """
        while not self._written.empty():
            done = self._written.get()
            if done.error is not None and not isinstance(done.error, errors.ApiError):
                raise done.error
            yield done

    def allocate(self, item: WorkItem, decision: Decision) -> None:
        """Write a placement."""
        self._deps.pool.submit(self._try, item, decision, self._allocate)

    def withdraw(self, item: WorkItem, decision: Decision) -> None:
        """Take back what may be written of a doubtful decision: its devices are not ours now."""
        self._deps.pool.submit(self._try, item, decision, self._withdraw)

    def _allocate(self, decision: Decision) -> None:
        workload = decision.workload
        self._deps.commit.allocate(workload.pod, workload.open_claims, decision.allocations)
        self._succeeded(workload, decision.placement)
        if workload.is_bound:
            self._wake_kubelet(workload.pod, decision.allocations)

    def _wake_kubelet(
        self, pod: pods.Pod, allocations: Mapping[ids.Key, claims.Allocation]
    ) -> None:
        """Have the kubelet try a bound pod again: it was refused while its claims had no devices.

        It would wait for 60 to 90 s by itself. The claims are written whatever comes of it.
        """
        stamp = max(allocation.stamped for allocation in allocations.values())
        try:
            self._deps.commit.retry_prepare(pod, stamp)
        except errors.ApiError as error:
            _log.info("kubelet not asked to try again", pod=pod.key, error=str(error))

    def _withdraw(self, decision: Decision) -> None:
        workload = decision.workload
        self._deps.commit.withdraw(workload.pod, workload.open_claims)
        raise errors.Conflict(409, "Conflict", "the devices are another allocator's by now")

    def _try(self, item: WorkItem, decision: Decision, act: Callable[[Decision], None]) -> None:
        error: Exception | None = None
        try:
            act(decision)
        except errors.ApiError as failure:
            error = failure
            self._failed(decision.workload, failure)
        except Exception as failure:  # noqa: BLE001 - raised again on the decider's thread
            error = failure
        self._written.put(WriteResult(item, decision, error))
        self._items.add(WAKE)

    def _succeeded(
        self, workload: allocator_types.Workload, placement: allocator_types.Placement
    ) -> None:
        self._deps.metrics.count_decision("allocated")
        message = allocator_messages.placement(placement)
        self._deps.reporter.normal(
            workload.pod, workload.open_claims, reasons.Reason.ALLOCATED, message
        )
        self._deps.reporter.report_allocated(workload.pod)
        _log.info("allocated", pod=workload.pod.key, node=placement.node, steps=placement.steps)

    def _failed(self, workload: allocator_types.Workload, failure: errors.ApiError) -> None:
        self._deps.metrics.count_decision("write_failed")
        _log.warning("allocation not written", pod=workload.pod.key, error=str(failure))
        if isinstance(failure, errors.Invalid | errors.Forbidden):
            reason = reasons.Reason.ALLOCATION_FAILED
            self._deps.reporter.warning(workload.pod, workload.open_claims, reason, str(failure))

    def clear(self, pod_claims: tuple[claims.Claim, ...]) -> None:
        """Take allocations back whose pods are gone."""
        for claim in pod_claims:
            self._submit(claim, self._deps.commit.clear)

    def release(self, pod: pods.Pod, held: tuple[claims.Claim, ...]) -> None:
        """Clear an unbound pod's allocations; those that it has reserved lose the pod first.

        What changes then brings the pod back, for the rest.
        """
        reserved = tuple(claim for claim in held if allocation_hold.is_reserved_by(claim, pod))
        self.unreserve_pod(pod, reserved)
        for claim in held:
            if not allocation_hold.is_reserved(claim):
                self._submit(claim, lambda waiting: self._deps.commit.clear_unbound(waiting, pod))

    def clear_bound(self, astray: tuple[claims.Claim, ...]) -> None:
        """Take allocations back whose only pod is bound to another node."""
        for claim in astray:
            self._submit(claim, self._deps.commit.clear_bound)

    def unreserve_pod(self, pod: pods.Pod, reserved: tuple[claims.Claim, ...]) -> None:
        """Take an unbound pod out of the reservedFor of its claims."""
        for claim in reserved:
            self._submit(claim, lambda held: self._deps.commit.unreserve_pod(held, pod))

    def set_node_condition(self, node: nodes.Node, condition: nodes.GpuCondition, now: str) -> None:
        """Write a Node's GPU condition."""
        body = nodes.render_gpu_condition(condition, node.gpu_condition, now)
        item = WorkItem("node", ids.Key(node.name))
        self._deps.pool.submit(
            self._write, item, lambda: self._deps.commit.patch_node_condition(node, body)
        )

    def drop_holds(self, claim: claims.Claim, holds: tuple[claims.Consumer, ...]) -> None:
        """Remove holds that have served."""
        self._submit(claim, lambda current: self._deps.commit.drop_holds(current, holds))

    def set_gang_condition(self, claim: claims.Claim, failed: str, now: str) -> None:
        """Write on a claim that its gang is ready to be bound, or why it was released."""
        self._submit(
            claim, lambda current: self._deps.commit.set_gang_condition(current, failed, now)
        )

    def ungate(self, pod: pods.Pod) -> None:
        """Let kube-scheduler have a pod: remove our scheduling gate."""
        item = WorkItem("pod", pod.key)
        self._deps.pool.submit(self._write, item, lambda: self._deps.commit.ungate(pod))

    def retry_prepare(self, claim: claims.Claim, pod: pods.Pod, stamp: str) -> None:
        """Have the kubelet prepare a pod's claims again; the refusal was cleared at `stamp`."""
        self._submit(claim, lambda _: self._nudge(pod, stamp))

    def _nudge(self, pod: pods.Pod, stamp: str) -> None:
        self._deps.commit.retry_prepare(pod, stamp)
        self._deps.metrics.count_decision("nudged")
        _log.info("kubelet asked to try again", pod=pod.key, cleared=stamp)

    def evict(self, claim: claims.Claim, pod: pods.Pod, message: str) -> None:
        """Evict a pod and report the reason on it and its claim."""
        self._submit(claim, lambda _: self._evict(claim, pod, message))

    def _evict(self, claim: claims.Claim, pod: pods.Pod, message: str) -> None:
        self._deps.commit.evict(pod)
        self._deps.metrics.count_eviction(reasons.Reason.POD_EVICTED)
        _log.info("pod evicted", pod=pod.key, why=message)
        self._deps.reporter.warning(pod, (claim,), reasons.Reason.POD_EVICTED, message)

    def report_kept(self, claim: claims.Claim, pod: pods.Pod, message: str) -> None:
        """Report that a pod stays although it should be evicted."""
        self._deps.reporter.warning(pod, (claim,), reasons.Reason.EVICTION_NOT_ALLOWED, message)

    def _submit(self, claim: claims.Claim, act: Callable[[claims.Claim], None]) -> None:
        self._deps.pool.submit(self._attempt, claim, act)

    def _attempt(self, claim: claims.Claim, act: Callable[[claims.Claim], None]) -> None:
        self._write(WorkItem("claim", claim.key), lambda: act(claim))

    def _write(self, item: WorkItem, act: Callable[[], None]) -> None:
        """One write; a refusal brings the item back to the decider."""
        try:
            act()
            self._items.forget(item)
        except errors.NotFound:
            return
        except errors.ApiError as error:
            _log.info("write refused", kind=item.kind, key=item.key, error=str(error))
            self._items.retry(item, error.retry_after_s or 0.0)
