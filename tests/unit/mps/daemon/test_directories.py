from pathlib import Path

import pytest

from driver import errors
from driver.mps.daemon import directories
from driver.mps.daemon import process as daemon_process

MIB = 1 << 20


@pytest.fixture
def daemon_paths(tmp_path: Path) -> daemon_process.DaemonPaths:
    log = tmp_path / "k/log"
    log.mkdir(parents=True)
    return daemon_process.DaemonPaths(tmp_path / "k/pipe", log, tmp_path / "shm")


def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    with pytest.raises(errors.BadInput, match=r"--state-dir: the socket .* expected at most 107"):
        directories.prepare(daemon_process.DaemonPaths(deep / "pipe", deep / "log", deep))
    assert not deep.exists()


def test_last_words_are_few_and_say_whose_they_are(
    daemon_paths: daemon_process.DaemonPaths,
) -> None:
    assert not directories.log_tails(daemon_paths)
    lines = [f"[2026 Control 1] event {number}" for number in range(9)]
    (daemon_paths.log / "control.log").write_text(
        "\n".join([*lines, "[2026 Control 1] Cmd:ps", ""])
    )
    (daemon_paths.log / "stderr").write_text("Cannot listen\n")
    assert directories.log_tails(daemon_paths) == (
        "stderr: Cannot listen; control.log: " + " | ".join(lines[-directories.TAIL_LINES :])
    )


def test_a_log_grows_to_its_bound_and_its_end_is_kept(
    daemon_paths: daemon_process.DaemonPaths,
) -> None:
    log = daemon_paths.log / "control.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * MIB)
        directories.truncate_logs(daemon_paths)
        assert log.stat().st_size == MIB
        writer.write(b"y" * 4 * MIB)
        directories.truncate_logs(daemon_paths)
        writer.write(b"goes on")
    assert log.read_bytes() == b"goes on"
    data = (daemon_paths.log / "control.log.1").read_bytes()
    assert 0 < len(data) < MIB
    assert set(data) == {ord("y")}
