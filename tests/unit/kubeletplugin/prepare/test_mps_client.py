import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import errors
from driver.devices import mps_files
from driver.kubeletplugin.prepare import mps_client
from driver.runtime.files import flock
from tests.fakes import clock as clocks

DESIRED = mps_files.Desired(key="GPU-1", devices=("GPU-1",), pinned_memory=(mps_files.MIB,))


@pytest.fixture
def time() -> clocks.FakeClock:
    return clocks.FakeClock()


@pytest.fixture
def door(tmp_path: Path, time: clocks.FakeClock) -> mps_client.MpsClient:
    return mps_client.MpsClient(tmp_path, "boot-1", time)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[None]:
    """Run a supervisor that never does anything."""
    handle = os.open(mps_files.Layout(tmp_path).lock, os.O_RDWR | os.O_CREAT)
    assert flock.try_lock(handle)
    yield
    os.close(handle)


def test_without_a_supervisor_nobody_waits_long_for_a_daemon_or_for_its_end(
    door: mps_client.MpsClient, time: clocks.FakeClock, tmp_path: Path
) -> None:
    with pytest.raises(errors.NodeFault, match="start MPS daemon GPU-1: ration-mps-supervisor"):
        door.ensure(DESIRED)
    status = mps_files.Layout(tmp_path).status("GPU-1")
    status.parent.mkdir()
    status.write_text("of another day")
    with pytest.raises(errors.NodeFault, match="end MPS daemon GPU-1: ration-mps-supervisor"):
        door.remove("GPU-1")
    assert time.elapsed_s < 3 * mps_client.ALONE_S
    assert door.desired_keys() == ()


@pytest.mark.usefixtures("supervised")
def test_the_process_that_answered_is_known_until_the_daemon_is_gone(
    door: mps_client.MpsClient, tmp_path: Path
) -> None:
    status = mps_files.Layout(tmp_path).status(DESIRED.key)
    status.parent.mkdir()
    ready = mps_files.Status(
        key=DESIRED.key,
        state=mps_files.State.READY,
        boot_id="boot-1",
        since="2026-11-21T09:00:00Z",
        applied=mps_files.digest(DESIRED.render()),
        pid=100,
        pipe_dir="/pipe",
        log_dir="/log",
    )
    status.write_text(ready.model_dump_json())
    assert door.last_pid(DESIRED.key) is None
    door.ensure(DESIRED)
    assert door.last_pid(DESIRED.key) == 100
    status.unlink()
    door.remove(DESIRED.key)
    assert door.last_pid(DESIRED.key) is None


@pytest.mark.usefixtures("supervised")
def test_a_supervisor_is_given_the_time_that_a_daemon_takes(
    door: mps_client.MpsClient, time: clocks.FakeClock
) -> None:
    with pytest.raises(errors.NodeFault, match="start MPS daemon GPU-1: not after 20 s"):
        door.ensure(DESIRED)
    assert time.elapsed_s > mps_client.READY_S
    assert door.desired_keys() == ("GPU-1",)
