"""A daemon's directories as they are mounted, kept and removed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.mps.daemon import directories
from driver.mps.daemon import process as daemon_process
from driver.runtime.files import mounts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")


@pytest.fixture
def daemon_paths(tmp_path: Path) -> Iterator[daemon_process.DaemonPaths]:
    run = tmp_path / "k"
    daemon_paths = daemon_process.DaemonPaths(run / "pipe", run / "log", tmp_path / "shm")
    yield daemon_paths
    mounts.unmount(daemon_paths.pipe)


def test_the_pipe_directory_is_a_small_tmpfs_that_only_root_can_enter(
    daemon_paths: daemon_process.DaemonPaths,
) -> None:
    directories.prepare(daemon_paths)
    run = daemon_paths.pipe.parent
    assert (run.stat().st_mode & 0o7777, daemon_paths.pipe.stat().st_mode & 0o7777) == (
        0o700,
        0o1777,
    )
    room = os.statvfs(daemon_paths.pipe)
    assert (room.f_blocks * room.f_frsize, room.f_files) == (1 << 20, 64)
    harmless = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
    assert room.f_flag & harmless == harmless
    assert not daemon_paths.log.is_mount()


def test_folders_that_anybody_could_enter_are_closed(
    daemon_paths: daemon_process.DaemonPaths,
) -> None:
    daemon_paths.log.mkdir(parents=True)
    for folder in (daemon_paths.log.parent, daemon_paths.log):
        folder.chmod(0o1777)
    directories.prepare(daemon_paths)
    assert daemon_paths.log.parent.stat().st_mode & 0o7777 == 0o700
    assert daemon_paths.log.stat().st_mode & 0o7777 == 0o755


def test_files_of_a_dead_daemon_are_removed_and_its_logs_are_kept(
    daemon_paths: daemon_process.DaemonPaths,
) -> None:
    directories.prepare(daemon_paths)
    previous = daemon_paths.pipe.stat()
    (daemon_paths.pipe / "control").write_text("")
    (daemon_paths.pipe / "more").mkdir()
    (daemon_paths.log / "control.log").write_text("last words")
    directories.prepare(daemon_paths)
    after = daemon_paths.pipe.stat()
    assert (list(daemon_paths.pipe.iterdir()), after.st_ino, after.st_dev) == (
        [],
        previous.st_ino,
        previous.st_dev,
    )
    assert (daemon_paths.log / "control.log.1").read_text() == "last words"
    assert not (daemon_paths.log / "control.log").exists()


def test_removing_leaves_nothing_and_nothing_is_fine(
    daemon_paths: daemon_process.DaemonPaths,
) -> None:
    directories.prepare(daemon_paths)
    (daemon_paths.pipe / "left").touch()
    directories.remove(daemon_paths)
    directories.remove(daemon_paths)
    assert not daemon_paths.pipe.parent.exists()
