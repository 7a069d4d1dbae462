"""A worker whose keeper fails for a reason nobody thought of."""

from pathlib import Path
from typing import cast

import prometheus_client

from driver import clock
from driver.devices import mps
from driver.mps import daemon, decision, keeper, metrics, statuses, worker
from tests.fakes import waiting


class Broken:
    """A program that cannot even be asked, until it is mended."""

    def __init__(self) -> None:
        self.calls = 0
        self.mended = False

    def end_servers(self, _: daemon.Place) -> None:
        self.calls += 1
        if not self.mended:
            raise RecursionError("of this key alone")


def test_an_exception_of_one_key_is_tried_again_and_ends_nothing(tmp_path: Path) -> None:
    layout, key = mps.Layout(tmp_path), "GPU-1"
    program = Broken()
    place = daemon.Place(layout.pipe(key), layout.log(key), tmp_path / "shm/k/shm")
    tools = keeper.Tools(
        cast("daemon.Program", program),
        metrics.Metrics(prometheus_client.CollectorRegistry()),
        clock.SystemClock(),
        lambda: 0.0,
        poll_s=1.0,
        host_root=Path("/"),
    )
    status = statuses.StatusFile(layout, key, "boot", clock.SystemClock())
    kept = worker.Worker(key, keeper.Keeper(key, place, status, tools), decision.Unwanted())
    kept.start()
    waiting.until(lambda: program.calls == 1)
    assert kept.want(decision.Unreadable("x"))  # it lives, and takes another goal
    program.mended = True
    assert kept.want(decision.Unwanted())
    waiting.until(lambda: kept.finished)
    assert program.calls == 2
