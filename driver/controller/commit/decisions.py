"""Decisions and their writes: the decider's placements, written on the pool (D4)."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog

from driver import errors, ids, reasons
from driver.controller import metrics as controller_metrics
from driver.controller.commit import allocations, gate_delay, reporter, write_pool
from driver.kube import workqueue
from driver.resources.core import pods
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Decision(snapshot.InFlight):
    """A placement to write, with what is written of it by claim.

    `doubtful`: an earlier try got no answer, so a refusal of this one says nothing of that.
    `opens_gate`: no gate but ours keeps the pod from kube-scheduler, and nothing else is to come.
    """

    workload: allocator_types.Workload
    placement: allocator_types.Placement
    doubtful: bool = False
    opens_gate: bool = False


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The end of an allocation's writes: `error` None when every claim is written."""

    item: write_pool.WorkItem
    decision: Decision
    error: Exception | None

    @property
    def in_doubt(self) -> bool:
        """Return whether part of the decision may be written although no answer came.

        A conflict ends every doubt: the claims were read again, and no earlier write can come.
        """
        if self.error is None or isinstance(self.error, errors.Conflict | errors.NotFound):
            return False
        return self.decision.doubtful or allocations.is_in_doubt(self.error)


class DecisionWriter:
    """Thread safe. Calls return at once; results come back as values, after a `WAKE`."""

    def __init__(
        self,
        pool: write_pool.WritePool,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        claims: allocations.AllocationWriter,
        reports: reporter.Reporter,
        metrics: controller_metrics.Metrics,
        delay: gate_delay.GateDelay,
    ) -> None:
        self._pool = pool
        self._items = items
        self._claims = claims
        self._reporter = reports
        self._metrics = metrics
        self._gate_delay = delay
        self._results: queue.SimpleQueue[WriteResult] = queue.SimpleQueue()

    def drain_results(self) -> Iterator[WriteResult]:
        """Yield the results since the last call.

        Raises:
            Exception: a programming error on the pool; re-raised on the decider's thread.
        """
        while not self._results.empty():
            done = self._results.get()
            if done.error is not None and not isinstance(done.error, errors.ApiError):
                raise done.error
            yield done

    def allocate(self, item: write_pool.WorkItem, decision: Decision) -> None:
        """Write a placement."""
        self._pool.run(lambda: self._try(item, decision, self._allocate))

    def withdraw(self, item: write_pool.WorkItem, decision: Decision) -> None:
        """Take back what may be written of a doubtful decision: its devices are not ours now."""
        self._pool.run(lambda: self._try(item, decision, self._withdraw))

    def _try(
        self, item: write_pool.WorkItem, decision: Decision, act: Callable[[Decision], None]
    ) -> None:
        error: Exception | None = None
        try:
            act(decision)
        except errors.ApiError as failure:
            error = failure
            self._failed(decision, failure)
        except Exception as failure:  # noqa: BLE001 - raised again on the decider's thread
            error = failure
        self._results.put(WriteResult(item, decision, error))
        self._items.add(write_pool.WAKE)

    def _allocate(self, decision: Decision) -> None:
        pod, open_claims = decision.pod, decision.workload.open_claims
        turn = self._gate_delay.begin() if decision.opens_gate else None
        with self._nominating(decision):
            self._claims.allocate(pod, open_claims, decision.allocations)
        if turn is not None:
            self._gate_delay.wait(turn)
            self._open_gate(pod)
        self._metrics.count_decision("allocated")
        message = allocator_messages.placement(decision.placement)
        self._reporter.allocated(pod, open_claims, message)
        _log.info("allocated", pod=pod.key, node=decision.node, steps=decision.placement.steps)
        if decision.workload.is_bound:
            self._wake_kubelet(decision)

    @contextlib.contextmanager
    def _nominating(self, decision: Decision) -> Iterator[None]:
        """Nominate the node of a pod behind our gate while the claims are written.

        Where the claims are not written the nomination is taken back: it would mean preemption.
        After a failure in doubt the same decision is written again, or withdrawn.
        """
        if not _is_nominated(decision):
            yield
            return
        pod = decision.pod
        try:
            with self._pool.meanwhile(lambda: self._nominate(pod, decision.node)):
                yield
        except errors.ApiError as error:
            if not allocations.is_in_doubt(error):
                self._nominate(pod, None)
            raise

    def _nominate(self, pod: pods.Pod, node: ids.NodeName | None) -> None:
        try:
            self._claims.nominate(pod, node)
        except errors.ApiError as error:
            _log.info("node not nominated", pod=pod.key, node=node, error=str(error))

    def _open_gate(self, pod: pods.Pod) -> None:
        """Remove our scheduling gate; the pod's next turn does if this fails."""
        try:
            self._claims.ungate(pod)
        except errors.ApiError as error:
            _log.info("scheduling gate not removed yet", pod=pod.key, error=str(error))

    def _wake_kubelet(self, decision: Decision) -> None:
        """Have the kubelet try a bound pod again: it was refused while its claims had no devices.

        It would wait for 60 to 90 s by itself. The claims are written whatever comes of it.
        """
        stamp = max(allocation.stamped for allocation in decision.allocations.values())
        try:
            self._claims.retry_prepare(decision.pod, stamp)
        except errors.ApiError as error:
            _log.info("kubelet not asked to try again", pod=decision.pod.key, error=str(error))

    def _withdraw(self, decision: Decision) -> None:
        self._claims.withdraw(decision.pod, decision.workload.open_claims)
        if _is_nominated(decision):
            self._nominate(decision.pod, None)
        raise errors.Conflict(409, "Conflict", "the devices are another allocator's by now")

    def _failed(self, decision: Decision, failure: errors.ApiError) -> None:
        self._metrics.count_decision("write_failed")
        _log.warning("allocation not written", pod=decision.pod.key, error=str(failure))
        if isinstance(failure, errors.Invalid | errors.Forbidden):
            reason, open_claims = reasons.Reason.ALLOCATION_FAILED, decision.workload.open_claims
            self._reporter.event(decision.pod, open_claims, reason, str(failure))


def _is_nominated(decision: Decision) -> bool:
    """Return whether kube-scheduler is to try the decision's node first."""
    return decision.opens_gate and pods.takes_nominations(decision.pod)
