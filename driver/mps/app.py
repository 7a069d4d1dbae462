"""Wiring of the supervisor."""

from typing import Final

import prometheus_client
import structlog

from driver import clock
from driver.devices import mps_files
from driver.kube import backoff
from driver.mps import metrics, status_files, supervisor
from driver.mps.config import SupervisorConfig
from driver.mps.daemon import process as daemon_process
from driver.mps.daemon import reconciler
from driver.runtime import lifecycle
from driver.runtime.files import boot_id, driver_search
from driver.runtime.metrics import server as telemetry_server

_log = structlog.get_logger(__name__)
COMPONENT: Final = "ration-mps-supervisor"
_STALE_S = 30.0


class App:
    """All threads of a supervisor process. Raises NodeFault."""

    def __init__(self, config: SupervisorConfig, jitter: backoff.Jitter, time: clock.Clock) -> None:
        self._config = config
        self._clock = time
        self._layout = mps_files.Layout(config.state_dir)
        self._boot_id = boot_id.read_boot_id(config.host_root)
        self._registry = prometheus_client.CollectorRegistry()
        counters = metrics.Metrics(self._registry)
        program = daemon_process.ControlProgram(
            driver_search.build_search(config.driver_root, config.host_root)
        )
        self._deps = reconciler.Deps(
            program, counters, time, jitter, config.poll_seconds, config.host_root
        )
        self._supervisor = supervisor.Supervisor(
            self._layout, self._make_reconciler, counters, time, config.desired_state_poll_seconds
        )

    def run(self) -> int:
        """Run until stopped, or until an essential thread dies; return the exit code."""
        host, port = self._config.metrics_host_port
        telemetry = telemetry_server.Telemetry(
            host,
            port,
            self._registry,
            health={"files": self._stalled},
            ready={"files": self._supervisor.problem},
        )
        life = lifecycle.Lifecycle(_log, self._clock)
        life.thread("telemetry", telemetry.run)
        life.thread("daemons", self._supervisor.run)
        _log.info("started", metrics_port=telemetry.port)
        return life.run()

    def _make_reconciler(self, key: str) -> reconciler.DaemonReconciler:
        shm = self._config.shm_dir / key / "shm"
        paths = daemon_process.DaemonPaths(self._layout.pipe(key), self._layout.log(key), shm)
        status = status_files.StatusFile(self._layout, key, self._boot_id, self._clock)
        return reconciler.DaemonReconciler(key, paths, status, self._deps)

    def _stalled(self) -> str | None:
        idle_s = self._supervisor.idle_s()
        return f"no look at the files for {idle_s:.0f} s" if idle_s > _STALE_S else None
