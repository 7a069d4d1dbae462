"""The supervisor's process and real daemons: wanted, changed, faulty, gone."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.devices import mps_files
from driver.mps import processes
from driver.mps.daemon import process as daemon_process
from driver.mps.daemon import reconcile_policy
from simulator import builder, control, layout, store
from tests.fakes import mpsnode, waiting

GIB = mpsnode.GIB
NOBODY = 65534


def test_ready_means_that_the_daemon_answers_with_the_limits(
    node: mpsnode.Node, minor: int
) -> None:
    status = node.serving(minor, node.want(minor, gib=20, percentage=40))
    assert (status.state, status.clients, status.problem) == (mps_files.State.READY, 0, "")
    assert node.ask(minor, "get_default_active_thread_percentage") == "40.0"
    assert node.ask(minor, "get_default_device_pinned_mem_limit 0") == "20G"
    _, annotations = node.client(minor, "--allocate", "max")
    assert (annotations["devices"][0]["limit"], annotations["mps"]["threadPercentage"]) == (
        20 * GIB,
        40.0,
    )


def test_a_daemon_can_serve_several_devices_with_their_own_limits(
    node: mpsnode.Node, minor: int, other: int
) -> None:
    devices = (node.uuid(other), node.uuid(minor))
    sizes = (4 * GIB, 6 * GIB)
    digest = node.want(minor, devices=devices, pinned_memory=sizes, multi_user=True)
    status = node.serving(minor, digest)
    assert "-M" in processes.read_arguments(status.pid or 0)
    _, annotations = node.client(minor)
    assert {device["uuid"]: device["limit"] for device in annotations["devices"]} == dict(
        zip(devices, sizes, strict=True)
    )


def test_a_mig_device_may_have_a_daemon(node: mpsnode.Node, minor: int) -> None:
    tool = str(node.driver_root / "usr/bin/nvidia-smi")

    def smi(*words: str) -> str:
        command = [tool, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    smi("-i", str(minor), "-mig", "1")
    try:
        smi("mig", "-i", str(minor), "-cgi", "2g.20gb", "-C")
        mig = re.findall(r"MIG-[0-9a-f-]+", smi("-L"))[0]
        node.serving(minor, node.want(minor, devices=(mig,), gib=5))
        _, annotations = node.client(minor)
        assert [(device["uuid"], device["limit"]) for device in annotations["devices"]] == [
            (mig, 5 * GIB)
        ]
        node.release(minor)
    finally:
        smi("mig", "-i", str(minor), "-dci")
        smi("mig", "-i", str(minor), "-dgi")
        smi("-i", str(minor), "-mig", "0")


def test_clients_are_counted_and_named(node: mpsnode.Node, minor: int) -> None:
    node.serving(minor, node.want(minor))
    process, _ = node.client(minor)
    status = node.told(minor, lambda status: status.clients == 1)
    assert [process.pid for process in status.processes] == [process.pid]
    process.kill()
    node.told(minor, lambda status: status.clients == 0 and not status.processes)


def test_other_limits_bind_later_clients_of_a_living_server(node: mpsnode.Node, minor: int) -> None:
    node.serving(minor, node.want(minor, gib=4, percentage=10))
    _, previous = node.client(minor)
    first = node.serving(minor, node.want(minor, gib=30, percentage=50))
    _, after = node.client(minor)
    assert previous["mps"]["server"] == after["mps"]["server"]
    assert [annotations["devices"][0]["limit"] for annotations in (previous, after)] == [
        4 * GIB,
        30 * GIB,
    ]
    assert [annotations["mps"]["threadPercentage"] for annotations in (previous, after)] == [
        10.0,
        50.0,
    ]
    second = node.serving(minor, node.want(minor, gib=8, percentage=20))
    _, last = node.client(minor)
    assert (last["devices"][0]["limit"], second.pid) == (8 * GIB, first.pid)


def test_limits_that_somebody_changed_are_set_again(node: mpsnode.Node, minor: int) -> None:
    digest = node.want(minor, percentage=50)
    node.serving(minor, digest)
    node.ask(minor, "set_default_active_thread_percentage 100")
    waiting.until(lambda: node.ask(minor, "get_default_active_thread_percentage") == "50.0", 20)
    node.serving(minor, digest)


def test_a_dead_daemon_is_told_with_its_last_words_and_started_again(
    node: mpsnode.Node, minor: int
) -> None:
    digest = node.want(minor)
    status = node.serving(minor, digest)
    pipe = node.layout.pipe(node.uuid(minor))
    mounted_as = pipe.stat().st_ino
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    reported = node.told(minor, lambda status: status.state is mps_files.State.FAILED)
    assert reported.problem.startswith("the daemon was killed by SIGKILL; control.log: ")
    assert "To connect CUDA applications" in reported.problem
    assert "Cmd:" not in reported.problem
    again = node.serving(minor, digest)
    assert again.pid != status.pid
    assert pipe.stat().st_ino == mounted_as  # a container has it mounted


def test_a_dead_daemon_stays_dead_while_a_client_of_it_lives(
    node: mpsnode.Node, minor: int
) -> None:
    digest = node.want(minor)
    status = node.serving(minor, digest)
    client, _ = node.client(minor, "--stay")
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    words = f"it is started again when its clients end: {client.pid}"
    reported = node.told(minor, lambda status: status.problem.endswith(words))
    assert (reported.state, reported.pid, reported.applied) == (mps_files.State.FAILED, None, "")
    # Wanting something else does not change that the client's context is dead.
    later = node.want(minor, gib=10)
    with pytest.raises(AssertionError, match="not within"):
        waiting.value(
            lambda: node.status(minor), lambda s: s.state is not mps_files.State.FAILED, 2
        )
    client.kill()
    client.wait()
    node.serving(minor, later)


def test_a_daemon_that_nobody_wants_goes_with_all_that_was_its(
    node: mpsnode.Node, minor: int
) -> None:
    status = node.serving(minor, node.want(minor))
    key = node.uuid(minor)
    node.unwant(minor)
    waiting.until(lambda: node.status(minor) is None, 20)
    assert not node.layout.run(key).exists()
    assert status.pid is not None
    assert processes.identify(status.pid) is None


def test_its_clients_are_given_time_and_then_lose_it(node: mpsnode.Node, minor: int) -> None:
    node.serving(minor, node.want(minor))
    client, _ = node.client(minor)
    node.unwant(minor)
    node.told(minor, lambda status: status.state is mps_files.State.STOPPING)
    waiting.until(lambda: node.status(minor) is None, 20)
    assert client.wait(mpsnode.WITHIN_S) == 1


def test_a_fault_in_a_client_is_told(node: mpsnode.Node, minor: int) -> None:
    node.serving(minor, node.want(minor))
    node.client(minor, "--fault", "--stay")
    status = node.told(minor, lambda status: "is FAULT" in status.problem)
    assert status.state is mps_files.State.READY


def test_a_slow_start_delays_no_other(node: mpsnode.Node, minor: int, other: int) -> None:
    node.serving(minor, node.want(minor))
    node.slow("mps_daemon", 3000)
    try:
        late = node.want(other)
        waiting.until(lambda: node.daemons(other), 20)
        node.serving(minor, node.want(minor, gib=10))
        behind = node.status(other)
        assert behind is not None
        assert behind.state is mps_files.State.STARTING
        node.serving(other, late)
    finally:
        node.slow("mps_daemon", 0)


def test_a_file_that_cannot_be_read_is_told_and_what_runs_goes_on(
    node: mpsnode.Node, minor: int
) -> None:
    previous = node.serving(minor, node.want(minor))
    key = node.uuid(minor)
    node.layout.desired(key).write_text('{"key": "x", "devices": []')
    status = node.told(minor, lambda status: "Invalid JSON" in status.problem)
    assert (status.state, status.pid, status.applied) == (
        previous.state,
        previous.pid,
        previous.applied,
    )
    content = {"key": "other", "devices": [key], "pinned_memory": [GIB]}
    node.layout.desired(key).write_text(json.dumps(content))
    status = node.told(minor, lambda status: ".key: is " in status.problem)
    assert status.pid == previous.pid
    node.serving(minor, node.want(minor))


def test_a_file_that_cannot_be_read_starts_nothing(node: mpsnode.Node, minor: int) -> None:
    node.layout.desired(node.uuid(minor)).write_text("{}")
    # Between its making and its writing the file is empty, and may be seen so.
    missing = f"{node.uuid(minor)}.json.key: Field required"
    status = node.told(minor, lambda status: missing in status.problem)
    assert status.state is mps_files.State.FAILED
    node.serving(minor, node.want(minor))


def test_a_start_that_fails_says_why_and_is_tried_again(node: mpsnode.Node, minor: int) -> None:
    run = node.layout.run(node.uuid(minor))
    run.write_text("in the way")
    digest = node.want(minor)
    status = node.told(minor, lambda status: status.state is mps_files.State.FAILED)
    assert f"make {run}: " in status.problem
    run.unlink()
    node.serving(minor, digest)


def test_a_daemon_that_ends_at_once_is_told_with_its_own_words(
    alone: mpsnode.Node, tmp_path: Path
) -> None:
    silent = tmp_path / "m"
    builder.build(silent, store.create(silent, "l4", "node-2"))  # and nobody runs it
    alone.supervise(f"--driver-root={layout.Layout(silent).driver_root}")
    alone.want(0)
    status = alone.told(0, lambda status: status.state is mps_files.State.FAILED)
    words = "the daemon ended with exit code 1; stderr: The NVIDIA driver does not answer"
    assert status.problem.startswith(words)


def test_without_the_drivers_program_it_says_so(alone: mpsnode.Node, tmp_path: Path) -> None:
    alone.supervise(f"--driver-root={tmp_path}")
    alone.want(0)
    status = alone.told(0, lambda status: status.state is mps_files.State.FAILED)
    assert f"find {daemon_process.CONTROL}: {tmp_path} has none (yet) in " in status.problem


def test_a_driver_that_is_nowhere_is_looked_for_and_found_when_it_comes(
    alone: mpsnode.Node, tmp_path: Path
) -> None:
    host = tmp_path / "h"
    (host / "proc/sys/kernel/random").mkdir(parents=True)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    (host / "proc/sys/kernel/random/boot_id").write_text(boot_id)
    alone.supervise("--driver-root=auto", f"--host-root={host}")
    digest = alone.want(0)
    status = alone.told(0, lambda status: status.state is mps_files.State.FAILED)
    assert f"looked in 4 places (seen below {host}): / has no folder of libraries" in status.problem
    (host / "run/nvidia").mkdir(parents=True)
    (host / "run/nvidia/driver").symlink_to(alone.driver_root)
    alone.serving(0, digest)


def of_nobody(node: mpsnode.Node, minor: int) -> mps_files.Desired:
    nobody = "GPU-00000000-0000-0000-0000-000000000000"
    return mps_files.Desired(key=node.uuid(minor), devices=(nobody,), pinned_memory=(GIB,))


def test_a_device_that_is_not_there_is_told_when_the_daemon_starts(
    node: mpsnode.Node, minor: int
) -> None:
    node.write(of_nobody(node, minor))
    status = node.told(minor, lambda status: status.state is mps_files.State.FAILED)
    words = "the daemon ended with exit code 100: the driver has no usable device"
    assert status.problem.startswith(words)


@pytest.fixture(scope="module")
def old() -> Iterator[mpsnode.Node]:
    """A node with a driver of 550."""
    with mpsnode.machine("550.163.01") as base:
        node = mpsnode.Node(base)
        node.supervise()
        waiting.until(node.layout.run_dir.is_dir, mpsnode.WITHIN_S)
        yield node
        node.close()


def test_with_550_a_device_that_is_not_there_is_told_when_a_client_comes(
    old: mpsnode.Node,
) -> None:
    old.serving(0, old.write(of_nobody(old, 0)))
    _, annotations = old.client(0)
    assert annotations["error"] == "CUDA_ERROR_MPS_CONNECTION_FAILED"
    status = old.told(0, lambda status: bool(status.problem))
    assert "the last MPS server ended with exit code" in status.problem


def test_with_550_a_daemon_serves_as_with_newer_drivers(old: mpsnode.Node) -> None:
    old.serving(1, old.want(1, gib=20, percentage=40))
    _, annotations = old.client(1, "--allocate", "max")
    assert (annotations["devices"][0]["limit"], annotations["mps"]["threadPercentage"]) == (
        20 * GIB,
        40.0,
    )
    status = old.told(1, lambda status: status.clients == 1)
    assert (status.state, status.problem) == (mps_files.State.READY, "")


def test_with_550_a_daemon_for_several_users_never_starts_and_says_why(old: mpsnode.Node) -> None:
    old.want(2, multi_user=True)
    status = old.told(2, lambda status: status.state is mps_files.State.FAILED)
    words = "the daemon ended with exit code 1; stderr: Cannot find MPS control daemon process"
    assert status.problem.startswith(words)


# Covers S-5.
def test_shared_memory_of_its_own_is_bounded_and_can_grow(node: mpsnode.Node, minor: int) -> None:
    status = node.serving(minor, node.want(minor, shm_bytes=GIB))
    assert status.shm_dir is not None
    assert status.pid is not None
    own = Path(status.shm_dir)
    theirs = Path("/proc") / str(status.pid) / "root/dev/shm"
    assert (theirs.stat().st_dev, theirs.stat().st_mode) == (own.stat().st_dev, 0o41777)
    assert own.stat().st_dev != Path("/dev/shm").stat().st_dev
    grown = node.serving(minor, node.want(minor, shm_bytes=2 * GIB))
    statvfs_result = os.statvfs(own)
    assert (statvfs_result.f_blocks * statvfs_result.f_frsize, grown.pid) == (2 * GIB, status.pid)
    node.unwant(minor)
    waiting.until(lambda: node.status(minor) is None, 20)
    assert not own.exists()


# Covers S-3.
def test_an_idle_control_program_is_named_and_the_daemon_lives_on(
    node: mpsnode.Node, minor: int
) -> None:
    digest = node.want(minor)
    previous = node.serving(minor, digest)
    with node.shell(minor) as shell:
        status = node.told(minor, lambda status: "another control program" in status.problem)
        assert status.state is mps_files.State.READY
        assert f"process {shell.pid} of user 0" in status.problem
        assert (status.occupied, status.holders) == (
            True,
            (mps_files.Holder(pid=shell.pid, user="0"),),
        )
        threading.Event().wait(
            reconcile_policy.ANSWER_S + 1
        )  # as long as a daemon that hangs is given
        assert node.told(minor, lambda status: bool(status.problem)).pid == previous.pid
    later = node.told(minor, lambda status: not status.problem)
    assert (later.pid, later.applied) == (previous.pid, digest)
    assert (later.occupied, later.holders) == (False, ())


def test_the_daemons_output_is_kept_as_its_log(node: mpsnode.Node, minor: int) -> None:
    node.serving(minor, node.want(minor))
    assert "Starting control daemon using socket" in node.control_log(minor)


#
def test_a_client_that_waits_behind_another_user_is_named_until_its_turn_comes(
    node: mpsnode.Node, minor: int
) -> None:
    node.serving(minor, node.want(minor))
    first, _ = node.client(minor)
    second = node.begin(minor, user=NOBODY)
    words = f"client {second.pid} of user {NOBODY} waits until the server of user 0 has no clients"
    status = node.told(minor, lambda status: status.problem == words)
    assert (status.waiting, status.state) == (words, mps_files.State.READY)
    first.kill()
    first.communicate(timeout=mpsnode.WITHIN_S)
    node.told(minor, lambda status: not status.waiting and status.clients == 1)
    assert second.poll() is None
    third = node.begin(minor)
    status = node.told(minor, lambda status: bool(status.waiting))
    assert status.waiting.startswith(f"client {third.pid} of user 0 waits until the server of user")


def test_a_client_that_is_killed_leaves_no_server_in_which_the_next_one_hangs(
    node: mpsnode.Node, minor: int
) -> None:
    daemon_before = node.serving(minor, node.want(minor)).pid
    control.send(node.base, "mps_wedge", str(minor))
    killed, previous = node.client(minor)
    node.told(minor, lambda status: status.clients == 1)
    killed.kill()
    killed.communicate(timeout=mpsnode.WITHIN_S)
    node.told(minor, lambda status: status.clients == 0)
    waiting.until(lambda: node.ask(minor, "get_server_list") == "", mpsnode.WITHIN_S)
    _, after = node.client(minor)
    assert after["mps"]["server"] != previous["mps"]["server"]
    assert node.daemons(minor) == (daemon_before,)


def test_clients_of_a_daemon_that_nobody_wants_are_terminated_before_it_goes(
    node: mpsnode.Node, minor: int
) -> None:
    node.serving(minor, node.want(minor))
    client, _ = node.client(minor, "--stay")
    node.told(minor, lambda status: status.clients == 1)
    node.unwant(minor)
    assert client.stdout is not None
    assert "CUDA_ERROR_MPS_CLIENT_TERMINATED" in client.stdout.readline()
