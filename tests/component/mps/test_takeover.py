"""Daemons outlive the supervisor, and the next one goes on with them."""

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib import error, request

import pytest

from driver.devices import mps_files
from driver.mps import processes
from driver.mps.daemon import cgroups
from driver.runtime.files import mounts
from tests.fakes import mpsnode, waiting


def killed(process: mpsnode.Process) -> None:
    process.kill()
    process.wait(mpsnode.WITHIN_S)


def test_a_killed_supervisor_leaves_daemon_and_client_to_the_next(alone: mpsnode.Node) -> None:
    first = alone.supervise()
    previous = alone.serving(0, alone.want(0, gib=20))
    client, annotations = alone.client(0)
    killed(first)
    later = alone.want(0, gib=30)
    alone.supervise()
    after = alone.serving(0, later)
    assert after.pid == previous.pid
    assert client.poll() is None
    _, next_said = alone.client(0)
    assert next_said["mps"]["server"] == annotations["mps"]["server"]
    assert next_said["devices"][0]["limit"] == 30 * mpsnode.GIB


@pytest.fixture
def pod() -> Iterator[tuple[Path, ...]]:
    """The groups of a pod's container, below a kubelet's root, in every hierarchy."""
    roots = [mount.point for mount in mounts.list_mounts() if mount.kind in {"cgroup", "cgroup2"}]
    highest = [root / f"ration-test-{os.getpid()}" for root in roots]
    paths = tuple(top / "kubepods/pod1" for top in highest)
    try:
        for top, group in zip(highest, paths, strict=True):
            for folder in (top, group.parent, group):
                cgroups.make_group(folder)
        yield paths
    finally:
        waiting.until(lambda: all(removed(top) for top in highest), mpsnode.WITHIN_S)


def removed(top: Path) -> bool:
    for folder, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return not top.exists()


def members(group: Path) -> set[int]:
    return {int(line) for line in (group / "cgroup.procs").read_text().split()}


# Covers L-4.
def test_a_daemon_outlives_the_container_of_its_supervisor(
    alone: mpsnode.Node, pod: tuple[Path, ...]
) -> None:
    def enter() -> None:
        for group in pod:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    alone.supervise(begun_by=enter)
    digest = alone.want(0)
    previous = alone.serving(0, digest)
    client, _ = alone.client(0)
    for group in pod:  # as a runtime ends a container without a PID namespace
        for pid in members(group):
            with contextlib.suppress(ProcessLookupError):  # a control program that has answered
                os.kill(pid, signal.SIGKILL)
    alone.supervisors[-1].wait(mpsnode.WITHIN_S)
    alone.supervise()
    alone.layout.status(alone.uuid(0)).unlink()
    assert alone.serving(0, digest).pid == previous.pid
    assert client.poll() is None
    alone.client(0)
    assert "stays in our cgroup" not in alone.logs()
    alone.release(0)


def test_the_end_of_a_daemon_that_was_taken_over_is_seen(alone: mpsnode.Node) -> None:
    killed_first = alone.supervise()
    digest = alone.want(0)
    previous = alone.serving(0, digest)
    killed(killed_first)
    alone.layout.status(alone.uuid(0)).unlink()
    alone.supervise()
    status = alone.serving(0, digest)
    assert status.pid == previous.pid
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    reported = alone.told(0, lambda status: status.state is mps_files.State.FAILED)
    assert reported.problem.startswith("the daemon ended; control.log: ")
    assert alone.serving(0, digest).pid != status.pid


def test_clients_of_a_daemon_that_died_meanwhile_are_still_waited_for(alone: mpsnode.Node) -> None:
    first = alone.supervise()
    digest = alone.want(0)
    status = alone.serving(0, digest)
    client, _ = alone.client(0, "--stay")
    alone.told(0, lambda status: status.clients == 1)
    killed(first)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    waiting.until(lambda: processes.identify(status.pid or 0) is None, 20)
    alone.supervise()
    reported = alone.told(0, lambda status: status.state is mps_files.State.FAILED)
    assert reported.problem.startswith("the daemon ended while no supervisor ran")
    assert reported.problem.endswith(f"when its clients end: {client.pid}")
    client.kill()
    client.wait()
    alone.serving(0, digest)


def test_a_status_of_another_boot_is_not_believed(alone: mpsnode.Node) -> None:
    first = alone.supervise()
    digest = alone.want(0)
    status = alone.serving(0, digest)
    killed(first)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    mine = mps_files.Process(pid=os.getpid(), started=processes.identify(os.getpid()).started)  # type: ignore[union-attr]
    old = status.model_copy(update={"boot_id": "before", "processes": (mine,)})
    alone.layout.status(alone.uuid(0)).write_bytes(old.render())
    assert not old.serves(digest, mpsnode.BOOT_ID)
    alone.supervise()
    alone.serving(0, digest)  # without waiting for a pid that meant another process


def test_a_daemon_that_nobody_wants_any_more_is_ended_by_the_next(alone: mpsnode.Node) -> None:
    first = alone.supervise()
    status = alone.serving(0, alone.want(0))
    killed(first)
    alone.unwant(0)
    alone.supervise()
    waiting.until(lambda: alone.status(0) is None, 20)
    assert status.pid is not None
    assert processes.identify(status.pid) is None
    assert not alone.layout.run(alone.uuid(0)).exists()


POINTS: dict[str, Callable[[mpsnode.Node], bool]] = {
    "directories": lambda node: node.layout.log(node.uuid(0)).exists(),
    "process": lambda node: bool(node.daemons(0)),
    "limits": lambda node: "set_default" in node.control_log(0),
}


def test_killed_at_any_point_of_a_start_one_daemon_comes_of_it(alone: mpsnode.Node) -> None:
    for reached in POINTS.values():
        alone.slow("mps_daemon", 100)
        first = alone.supervise("--look-seconds=0.001")
        digest = alone.want(0)
        waiting.until(partial(reached, alone), 20)
        killed(first)
        alone.slow("mps_daemon", 0)
        second = alone.supervise()
        status = alone.serving(0, digest)
        assert alone.daemons(0) == (status.pid,)
        alone.unwant(0)
        waiting.until(lambda: alone.status(0) is None, 20)
        assert not alone.daemons(0)
        killed(second)


def test_sigterm_ends_the_supervisor_and_nothing_else(alone: mpsnode.Node) -> None:
    process = alone.supervise()
    status = alone.serving(0, alone.want(0))
    client, _ = alone.client(0)
    process.terminate()
    assert process.wait(mpsnode.WITHIN_S) == 0
    assert status.pid is not None
    assert processes.identify(status.pid) is not None
    assert client.poll() is None
    assert alone.ask(0, "get_default_active_thread_percentage") == "50.0"


def test_a_second_supervisor_waits_for_the_first(alone: mpsnode.Node) -> None:
    first = alone.supervise()
    previous = alone.serving(0, alone.want(0))
    alone.supervise()
    waiting.until(lambda: "another supervisor runs" in page(alone, "/readyz"), 20)
    killed(first)
    waiting.until(lambda: page(alone, "/readyz") == "files: ok\n", 20)
    after = alone.serving(0, alone.want(0, gib=10))
    assert after.pid == previous.pid
    metrics = page(alone, "/metrics")
    assert 'dra_gpu_mps_daemons{state="ready"} 1.0' in metrics
    assert 'dra_gpu_mps_daemons{state="failed"} 0.0' in metrics


def page(node: mpsnode.Node, path: str) -> str:
    """Return what the second supervisor serves there; nothing while it does not serve."""
    ports = re.findall(r'"metrics_port": (\d+)', node.logs())
    if len(ports) < 2:
        return ""
    try:
        with request.urlopen(f"http://127.0.0.1:{ports[1]}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except error.HTTPError as e:
        with e:
            return e.read().decode()


def test_a_folder_that_cannot_be_listed_says_nothing_about_what_is_wanted(
    alone: mpsnode.Node,
) -> None:
    alone.supervise()
    status = alone.serving(0, alone.want(0))
    folder = alone.layout.desired_dir
    aside = folder.rename(folder.with_name("aside"))
    waiting.until(lambda: "desired files not read" in alone.logs(), 20)
    assert status.pid is not None
    assert processes.identify(status.pid) is not None
    aside.rename(folder)
    assert alone.serving(0, alone.want(0, gib=10)).pid == status.pid


@pytest.mark.parametrize("flag", ["--state-dir=here", "--poll-seconds=0", "--kubeconfig=/k"])
def test_a_setting_that_makes_no_sense_is_named(alone: mpsnode.Node, flag: str) -> None:
    assert alone.supervise(flag).wait(mpsnode.WITHIN_S) != 0
    assert flag.partition("=")[0] in alone.logs()
