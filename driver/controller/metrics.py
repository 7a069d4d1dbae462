"""The controller's metrics. Base units, closed label sets, every series there from the start."""

import prometheus_client as prometheus

_RESULTS = ("allocated", "no_fit", "waits", "write_failed", "taken_back", "nudged", "evicted")


class Metrics:
    """All of them, on a registry of their own."""

    def __init__(self, registry: prometheus.CollectorRegistry) -> None:
        decisions = prometheus.Counter(
            "dra_gpu_controller_decisions",
            "Decisions for pods by result.",
            ["result"],
            registry=registry,
        )
        self._decisions = {result: decisions.labels(result=result) for result in _RESULTS}
        self.decision_seconds = prometheus.Histogram(
            "dra_gpu_controller_decision_seconds",
            "Time to decide for one pod, writing excluded.",
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
            registry=registry,
        )
        self.failed_turns = prometheus.Counter(
            "dra_gpu_controller_failed_turns",
            "Turns of the work loop that ended in a fault of ours.",
            registry=registry,
        )
        self.leading = prometheus.Gauge(
            "dra_gpu_controller_leading",
            "1 while this process holds the Lease.",
            registry=registry,
        )

    def decided(self, result: str) -> None:
        """Count a decision; `result` is one of the closed set."""
        self._decisions[result].inc()
