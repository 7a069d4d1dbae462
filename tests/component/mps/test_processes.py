"""Tests of who a process is, by the real /proc."""

import os
import subprocess
import sys
from pathlib import Path

from driver.devices import mps_files
from driver.mps import processes
from tests.fakes import waiting

WAITS = "import sys; sys.stdin.read()"


def test_a_process_is_itself_until_it_ends_even_as_a_zombie() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE) as process:
        identify = processes.identify(process.pid)
        assert identify is not None
        later = mps_files.Process(pid=identify.pid, started=identify.started + 1)
        assert processes.filter_alive([identify, later]) == (identify,)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # not reaped
        assert processes.filter_alive([identify]) == ()
    assert processes.identify(process.pid) is None


def program_on(pipe: Path, folder: Path, *previous: str) -> "subprocess.Popen[bytes]":
    """Start `some-program`, named by its file, with the pipe directory in its environment."""
    program = folder / "some-program"
    program.write_text(f"#!{sys.executable}\n{WAITS}\n")
    program.chmod(0o755)
    environment = {**os.environ, processes.PIPE: str(pipe)}
    process = subprocess.Popen(
        [*previous, str(program), "-f"], env=environment, stdin=subprocess.PIPE
    )
    waiting.until(lambda: str(program) in processes.read_arguments(process.pid)[:2])
    return process


def test_a_program_is_found_by_its_pipe_directory_whoever_started_it(tmp_path: Path) -> None:
    pipe, other = tmp_path / "pipe", tmp_path / "other"
    pipe.mkdir()
    other.mkdir()
    with program_on(pipe, tmp_path) as process:
        assert processes.pids_with_pipe("some-program", pipe) == (process.pid,)
        assert processes.pids_with_pipe("some-program", other) == ()
        assert processes.pids_with_pipe("other-program", pipe) == ()
        process.kill()


def test_a_program_that_names_our_path_in_another_file_system_is_not_ours(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    script = 'mount -t tmpfs none "$0" && exec "$@"'
    container = ("unshare", "--mount", "sh", "-c", script, str(pipe))
    with program_on(pipe, tmp_path, *container) as process:
        assert processes.pids_with_pipe("some-program", pipe) == ()
        process.kill()
