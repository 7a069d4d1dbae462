"""The controller's metrics. Base units, closed label sets, every series there from the start."""

from collections.abc import Iterable
from typing import Final

import prometheus_client as prometheus

from driver import reasons
from driver.controller import node_request_metrics
from driver.runtime.metrics.families import Figures

REFUSALS: Final = (
    reasons.Reason.ALLOCATOR_ERROR,
    reasons.Reason.CONFIG_INVALID,
    reasons.Reason.CONSTRAINT_NOT_SATISFIED,
    reasons.Reason.COUNTERS_EXHAUSTED,
    reasons.Reason.CROSS_NAMESPACE_SHARING,
    reasons.Reason.DEVICE_CLASS_NOT_FOUND,
    reasons.Reason.DEVICE_CORDONED,
    reasons.Reason.DEVICE_IN_USE,
    reasons.Reason.DEVICE_NOT_MANAGED,
    reasons.Reason.DEVICE_OVERLAP,
    reasons.Reason.DEVICE_TAINTED,
    reasons.Reason.FOREIGN_DEVICES,
    reasons.Reason.GANG_INVALID,
    reasons.Reason.GANG_PENDING,
    reasons.Reason.INCOMPATIBLE_GROUPS,
    reasons.Reason.INSUFFICIENT_CAPACITY,
    reasons.Reason.ISOLATION_TOO_WEAK,
    reasons.Reason.MULTIPLE_MPS_DAEMONS,
    reasons.Reason.NODE_ARRIVING,
    reasons.Reason.NODE_BACKED_OFF,
    reasons.Reason.NODE_CORDONED,
    reasons.Reason.NODE_FULL,
    reasons.Reason.NODE_INTERRUPTED,
    reasons.Reason.NODE_MISMATCH,
    reasons.Reason.NODE_NOT_READY,
    reasons.Reason.NODE_PINNED,
    reasons.Reason.NODE_POD_AFFINITY,
    reasons.Reason.NODE_POD_ANTI_AFFINITY,
    reasons.Reason.NODE_PORT_TAKEN,
    reasons.Reason.NODE_TAINTED,
    reasons.Reason.NODE_TOPOLOGY_SPREAD,
    reasons.Reason.NODE_VOLUME,
    reasons.Reason.NODE_VOLUME_IN_USE,
    reasons.Reason.NODE_VOLUME_LIMIT,
    reasons.Reason.NOT_SUPPORTED,
    reasons.Reason.NO_FIT,
    reasons.Reason.OTHER_CLAIM_UNSATISFIED,
    reasons.Reason.POOL_INCOMPLETE,
    reasons.Reason.QUEUE_LIMIT_EXCEEDED,
    reasons.Reason.SEARCH_BUDGET_EXCEEDED,
    reasons.Reason.SELECTOR_FAILED,
    reasons.Reason.SELECTOR_INVALID,
    reasons.Reason.SELECTOR_MISMATCH,
    reasons.Reason.SHARING_CONFLICT,
    reasons.Reason.TOO_MANY_DEVICES,
    reasons.Reason.UNSUPPORTED_DEVICE_FIELDS,
)
"""Why a pod is not placed."""
EVICTIONS: Final = (
    reasons.Reason.POD_EVICTED,
    reasons.Reason.PREEMPTED,
    reasons.Reason.IDLE_EVICTED,
    reasons.Reason.NODE_INTERRUPTED,
)
OTHER: Final = "Other"
_WAITS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
_RESULTS = (
    *("allocated", "no_fit", "waits", "write_failed"),
    *("taken_back", "repaired", "nudged", "evicted"),
)


class Metrics:
    """All of them, on a registry of their own.

    `shapes` are the nodes that an autoscaler can bring, by name.
    """

    def __init__(self, registry: prometheus.CollectorRegistry, shapes: Iterable[str] = ()) -> None:
        self.nodes = node_request_metrics.NodeRequestMetrics(registry, shapes)
        decisions = prometheus.Counter(
            "dra_gpu_controller_decisions",
            "Scheduling decisions by result.",
            ["result"],
            registry=registry,
        )
        self._decisions = {result: decisions.labels(result=result) for result in _RESULTS}
        self.decision_seconds = prometheus.Histogram(
            "dra_gpu_controller_decision_seconds",
            "Time to schedule one pod, without writes.",
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
            registry=registry,
        )
        self.pod_seconds = prometheus.Histogram(
            "dra_gpu_controller_pod_allocation_seconds",
            "Time from the creation of a pod until its claims were allocated. The API server "
            "reports creation times in whole seconds.",
            buckets=_WAITS,
            registry=registry,
        )
        self._refusals = _by_reason(
            "dra_gpu_controller_refusals",
            "Decisions that left a pod pending, by reason. A decision with several reasons, such "
            "as those of different nodes, counts once for each.",
            REFUSALS,
            registry,
        )
        self._evictions = _by_reason(
            "dra_gpu_controller_evictions",
            "Pods evicted, by the reason of the event: preemption, idle GPUs, interrupted nodes, "
            "or claims that cannot be prepared or exceed their share.",
            EVICTIONS,
            registry,
        )
        self._queues: Figures = {}
        self.failed_turns = prometheus.Counter(
            "dra_gpu_controller_failed_turns",
            "Iterations of the scheduling loop that ended with an internal error.",
            registry=registry,
        )
        self.leading = prometheus.Gauge(
            "dra_gpu_controller_leading",
            "1 while this process holds the Lease.",
            registry=registry,
        )

    def count_decision(self, result: str) -> None:
        """Count a decision; `result` is one of the closed set."""
        self._decisions[result].inc()

    def count_refusals(self, why: Iterable[reasons.Reason]) -> None:
        """Count a pod that was not placed, once for each reason."""
        for reason in dict.fromkeys(reason if reason in REFUSALS else None for reason in why):
            self._refusals[OTHER if reason is None else reason.value].inc()

    def count_eviction(self, reason: reasons.Reason) -> None:
        """Count an evicted pod."""
        self.count_decision("evicted")
        self._evictions[reason.value if reason in EVICTIONS else OTHER].inc()

    def set_queue_values(self, figures: Figures) -> None:
        """Set the current values of all queues."""
        self._queues = figures

    def queue_values(self) -> Figures:
        """Return the last values of the queues; from any thread."""
        return self._queues


def _by_reason(
    name: str,
    about: str,
    expected: Iterable[reasons.Reason],
    registry: prometheus.CollectorRegistry,
) -> dict[str, prometheus.Counter]:
    counter = prometheus.Counter(name, about, ["reason"], registry=registry)
    return {
        reason: counter.labels(reason=reason)
        for reason in (*(reason.value for reason in expected), OTHER)
    }
