"""A worker whose keeper fails for a reason nobody thought of."""

from pathlib import Path
from typing import cast

import prometheus_client

from driver import clock
from driver.devices import mps_files
from driver.mps import metrics, status_files, worker
from driver.mps.daemon import process as daemon_process
from driver.mps.daemon import reconcile_policy, reconciler
from tests.fakes import waiting


class Broken:
    """A program that cannot even be asked, until it is mended."""

    def __init__(self) -> None:
        self.calls = 0
        self.mended = False

    def kill_servers(self, _: daemon_process.DaemonPaths) -> None:
        self.calls += 1
        if not self.mended:
            raise RecursionError("of this key alone")


def test_an_exception_of_one_key_is_tried_again_and_ends_nothing(tmp_path: Path) -> None:
    layout, key = mps_files.Layout(tmp_path), "GPU-1"
    program = Broken()
    daemon_paths = daemon_process.DaemonPaths(
        layout.pipe(key), layout.log(key), tmp_path / "shm/k/shm"
    )
    tools = reconciler.Deps(
        cast("daemon_process.ControlProgram", program),
        metrics.Metrics(prometheus_client.CollectorRegistry()),
        clock.SystemClock(),
        lambda: 0.0,
        poll_s=1.0,
        host_root=Path("/"),
    )
    status = status_files.StatusFile(layout, key, "boot", clock.SystemClock())
    retained = worker.Worker(
        key,
        reconciler.DaemonReconciler(key, daemon_paths, status, tools),
        reconcile_policy.NoDaemon(),
    )
    retained.start()
    waiting.until(lambda: program.calls == 1)
    assert retained.set_goal(
        reconcile_policy.UnreadableFile("x")
    )  # it lives, and takes another goal
    program.mended = True
    assert retained.set_goal(reconcile_policy.NoDaemon())
    waiting.until(lambda: retained.is_finished)
    assert program.calls == 2
