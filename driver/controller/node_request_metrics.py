"""Counters of requested nodes by shape and outcome; every series exists from the start."""

from collections.abc import Iterable
from typing import Final

import prometheus_client as prometheus

NOT_ARRIVED, CONTRADICTED, REFUSED = "NotArrived", "Contradicted", "Refused"
FAILURES: Final = (NOT_ARRIVED, CONTRADICTED, REFUSED)
"""Why a node failed: not in time, not as it was to be, or the API server took no placeholder."""
_STARTS_S: Final = (30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 420.0, 600.0, 900.0, 1800.0)


class NodeRequestMetrics:
    """Counters of requested nodes. `shapes` are the shape names of the document."""

    def __init__(self, registry: prometheus.CollectorRegistry, shapes: Iterable[str] = ()) -> None:
        self._requested = prometheus.Counter(
            "dra_gpu_nodes_requested",
            "Nodes requested from the autoscaler, by shape.",
            ["shape"],
            registry=registry,
        )
        self._arrived = prometheus.Counter(
            "dra_gpu_nodes_arrived",
            "Requested nodes that published all their GPUs, by shape.",
            ["shape"],
            registry=registry,
        )
        self._failed = prometheus.Counter(
            "dra_gpu_nodes_failed",
            "Node requests that failed, by shape and reason: the node did not publish its GPUs in "
            "time, does not match its shape, or the API server rejected the request.",
            ["shape", "reason"],
            registry=registry,
        )
        self._starts = prometheus.Histogram(
            "dra_gpu_nodes_startup_seconds",
            "Time from requesting a node until it published all its GPUs, by shape.",
            ["shape"],
            buckets=_STARTS_S,
            registry=registry,
        )
        for shape in shapes:
            self._expect(shape)

    def count_requested(self, shape: str, count: int = 1) -> None:
        """Count requested nodes."""
        self._requested.labels(shape).inc(count)

    def observe_arrival(self, shape: str, seconds: float) -> None:
        """Count a complete node, and observe the seconds since its request."""
        self._arrived.labels(shape).inc()
        self._starts.labels(shape).observe(seconds)

    def count_failed(self, shape: str, why: str) -> None:
        """Count a requested node that was given up; `why` is one of `FAILURES`."""
        self._failed.labels(shape, why).inc()

    def _expect(self, shape: str) -> None:
        for metric in (self._requested, self._arrived, self._starts):
            metric.labels(shape)
        for why in FAILURES:
            self._failed.labels(shape, why)
