"""Tests of a tenant, root in its container, that attacks the node through the pipe directory.

The attacks write to the directory as root on the node does: containers have it read-only, and are
stopped earlier.
"""

import contextlib
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from driver.kubeletplugin.cdi import spec_writer
from tests.fakes import mpsnode, waiting

NOBODY = 65534
DEEP = 3_000
MIB = 1 << 20
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def pipe(node: mpsnode.Node, minor: int) -> Path:
    node.serving(minor, node.want(minor, shm_bytes=4 * MIB))
    return node.layout.pipe(node.uuid(minor))


def run(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, env=environment or None, capture_output=True, text=True, check=False, timeout=60
    )


def nested(folder: Path, most: int) -> int:
    """Make folders in one another, each entered before the next; how many there was room for."""
    index, depth = os.open(folder, os.O_PATH), 0
    with contextlib.suppress(OSError):
        while depth < most:
            os.mkdir("d", dir_fd=index)
            inner = os.open("d", os.O_PATH, dir_fd=index)
            os.close(index)
            index, depth = inner, depth + 1
    os.close(index)
    return depth


def fill(folder: Path) -> None:
    for number in range(DEEP):
        (folder / str(number)).touch()


# Covers S-1.
def test_a_setuid_program_left_there_makes_nobody_root_on_the_node(
    node: mpsnode.Node, minor: int
) -> None:
    program = pipe(node, minor) / "x"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    program.chmod(0o4755)
    done = run(*AS_NOBODY, str(program), "-u")
    assert (done.returncode, done.stdout) != (0, "0\n")
    assert "Permission denied" in done.stderr
    with pytest.raises(PermissionError):
        run(str(program), "-u")  # not for root either


def test_a_device_node_made_there_opens_no_device(node: mpsnode.Node, minor: int) -> None:
    path = pipe(node, minor) / "null"
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with pytest.raises(PermissionError):
        path.open("rb").close()


def test_nested_folders_end_neither_the_supervisor_nor_the_key(
    node: mpsnode.Node, minor: int, other: int
) -> None:
    neighbour = node.serving(other, node.want(other, shm_bytes=4 * MIB))
    assert nested(pipe(node, minor), DEEP) < DEEP
    node.unwant(minor)
    waiting.until(lambda: node.status(minor) is None, 20)
    assert not node.layout.run(node.uuid(minor)).exists()
    assert node.supervisors[0].poll() is None
    pipe(node, minor)
    assert node.daemons(other) == (neighbour.pid,)


def test_nested_folders_of_an_earlier_version_end_no_supervisor(alone: mpsnode.Node) -> None:
    """There the directory was no file system of its own, and had no bound."""
    left = alone.layout.pipe(alone.uuid(1))
    left.mkdir(parents=True)
    try:
        assert nested(left, DEEP) == DEEP
        supervisor = alone.supervise()
        waiting.until(lambda: "recursion" in alone.logs(), 20)
        alone.serving(0, alone.want(0))
        assert supervisor.poll() is None
    finally:
        run("rm", "-rf", str(left), PATH=os.environ["PATH"])


def test_files_in_the_pipe_directory_are_bounded_and_use_no_disk(
    node: mpsnode.Node, minor: int
) -> None:
    path = pipe(node, minor)
    assert path.stat().st_dev != node.layout.run_dir.stat().st_dev
    with pytest.raises(OSError, match="No space left"):
        (path / "large").write_bytes(b"x" * 2 * MIB)
    with pytest.raises(OSError, match="No space left"):
        fill(path)
    node.release(minor)
    pipe(node, minor)  # and the next daemon has room again


def test_no_other_user_of_the_node_gets_to_the_socket_or_the_shared_memory(
    node: mpsnode.Node, minor: int
) -> None:
    socket = pipe(node, minor) / "control"
    status = node.status(minor)
    assert status is not None
    assert status.shm_dir is not None
    for path in (str(socket), status.shm_dir, status.log_dir):
        assert Path(path).exists()
        assert "Permission denied" in run(*AS_NOBODY, "stat", path).stderr


def test_a_server_of_another_user_gets_to_the_socket_by_its_path(
    node: mpsnode.Node, minor: int
) -> None:
    """Connect as nvidia-cuda-mps-server does, which the daemon starts as its clients' user."""
    socket = pipe(node, minor) / "control"
    below = f"{node.driver_root}{socket}"  # the daemon's file system is the driver's
    (pid,) = node.daemons(minor)
    inside = ("nsenter", f"--target={pid}", "--mount", *AS_NOBODY)
    done = run(*inside, "stat", "--format=%F", below)
    assert (done.stdout, done.stderr) == ("socket\n", "")


@pytest.mark.parametrize("user", [0, NOBODY])
def test_a_client_connects_through_the_mount_its_container_has(
    node: mpsnode.Node, minor: int, user: int
) -> None:
    node.serving(minor, node.want(minor, gib=10, multi_user=True, shm_bytes=4 * MIB))
    source = node.layout.pipe(node.uuid(minor))
    path = node.own / "nvidia-mps"
    path.mkdir(exist_ok=True)
    options = ",".join(set(spec_writer.PIPE_OPTIONS) - {"rbind", "rprivate"})
    script = (
        'mount --rbind "$0" "$1" && mount -o "remount,bind,$2" "$1" && shift 2 && '
        'touch "$CUDA_MPS_PIPE_DIRECTORY/x"; exec "$@"'
    )
    client = str(node.driver_root / "usr/bin/simclient")
    who = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
    container = ("unshare", "--mount", "sh", "-c", script, str(source), str(path), options)
    done = run(*container, *who, client, CUDA_MPS_PIPE_DIRECTORY=str(path), PATH=os.environ["PATH"])
    assert "Read-only file system" in done.stderr
    assert json.loads(done.stdout)["devices"][0]["limit"] == 10 * mpsnode.GIB
