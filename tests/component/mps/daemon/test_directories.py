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
def place(tmp_path: Path) -> Iterator[daemon_process.DaemonPaths]:
    run = tmp_path / "k"
    made = daemon_process.DaemonPaths(run / "pipe", run / "log", tmp_path / "shm")
    yield made
    mounts.unmount(made.pipe)


def test_the_pipe_directory_is_a_small_tmpfs_that_only_root_can_enter(
    place: daemon_process.DaemonPaths,
) -> None:
    directories.prepare(place)
    run = place.pipe.parent
    assert (run.stat().st_mode & 0o7777, place.pipe.stat().st_mode & 0o7777) == (0o700, 0o1777)
    room = os.statvfs(place.pipe)
    assert (room.f_blocks * room.f_frsize, room.f_files) == (1 << 20, 64)
    harmless = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
    assert room.f_flag & harmless == harmless
    assert not place.log.is_mount()


def test_folders_that_anybody_could_enter_are_closed(place: daemon_process.DaemonPaths) -> None:
    place.log.mkdir(parents=True)
    for folder in (place.log.parent, place.log):
        folder.chmod(0o1777)
    directories.prepare(place)
    assert place.log.parent.stat().st_mode & 0o7777 == 0o700
    assert place.log.stat().st_mode & 0o7777 == 0o755


def test_what_a_dead_daemon_left_is_cleaned_and_its_logs_are_kept(
    place: daemon_process.DaemonPaths,
) -> None:
    directories.prepare(place)
    before = place.pipe.stat()
    (place.pipe / "control").write_text("")
    (place.pipe / "more").mkdir()
    (place.log / "control.log").write_text("last words")
    directories.prepare(place)
    after = place.pipe.stat()
    assert (list(place.pipe.iterdir()), after.st_ino, after.st_dev) == (
        [],
        before.st_ino,
        before.st_dev,
    )
    assert (place.log / "control.log.1").read_text() == "last words"
    assert not (place.log / "control.log").exists()


def test_removing_leaves_nothing_and_nothing_is_fine(place: daemon_process.DaemonPaths) -> None:
    directories.prepare(place)
    (place.pipe / "left").touch()
    directories.remove(place)
    directories.remove(place)
    assert not place.pipe.parent.exists()
