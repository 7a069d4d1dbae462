"""The supervisor's metrics: base units, closed label sets, every series present from the start."""

import threading
from typing import Final

import prometheus_client as prometheus

from driver.devices import mps_files

ENDS: Final = ("died", "refused", "hung", "asked")
"""How a daemon ended: after it served, before, killed as hung, on request."""
_BUCKETS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """All metrics, on a separate registry; safe from any thread."""

    def __init__(self, registry: prometheus.CollectorRegistry) -> None:
        daemons = prometheus.Gauge(
            "dra_gpu_mps_daemons", "MPS daemons by state.", ["state"], registry=registry
        )
        self._daemons = {state: daemons.labels(state=state.value) for state in mps_files.State}
        self._clients = prometheus.Gauge(
            "dra_gpu_mps_clients", "Clients of all MPS daemons.", registry=registry
        )
        self.starts = prometheus.Counter(
            "dra_gpu_mps_daemon_starts", "MPS daemons started.", registry=registry
        )
        ends = prometheus.Counter(
            "dra_gpu_mps_daemon_ends",
            "MPS daemons that ended, by how: after serving, before serving, for not answering, or "
            "on request.",
            ["how"],
            registry=registry,
        )
        self.ends = {how: ends.labels(how=how) for how in ENDS}
        self.ready_seconds = prometheus.Histogram(
            "dra_gpu_mps_ready_seconds",
            "Time from the start of a daemon until it answers with the desired limits.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.unreadable = prometheus.Gauge(
            "dra_gpu_mps_unreadable_files",
            "Desired-state files that cannot be read.",
            registry=registry,
        )
        self._statuses: dict[str, tuple[mps_files.State, int]] = {}
        self._guard = threading.Lock()

    def set_daemon(self, key: str, status: tuple[mps_files.State, int] | None) -> None:
        """Set a daemon's state and its number of clients; None: the key has no daemon."""
        with self._guard:
            self._statuses.pop(key, None)
            if status is not None:
                self._statuses[key] = status
            daemons = self._statuses.values()
            for state, gauge in self._daemons.items():
                gauge.set(sum(state is current for current, _ in daemons))
            self._clients.set(sum(clients for _, clients in daemons))
