"""Who a process is, by the real /proc."""

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
        known = processes.identify(process.pid)
        assert known is not None
        later = mps_files.Process(pid=known.pid, started=known.started + 1)
        assert processes.filter_alive([known, later]) == (known,)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # not reaped
        assert processes.filter_alive([known]) == ()
    assert processes.identify(process.pid) is None


def test_a_program_is_found_by_its_pipe_directory_whoever_started_it(tmp_path: Path) -> None:
    program = tmp_path / "some-program"
    program.write_text(f"#!{sys.executable}\n{WAITS}\n")
    program.chmod(0o755)
    environment = {processes.PIPE: str(tmp_path / "pipe")}
    with subprocess.Popen([program, "-f"], env=environment, stdin=subprocess.PIPE) as process:
        waiting.until(lambda: processes.read_environment(process.pid) == environment)
        assert processes.pids_with_pipe("some-program", tmp_path / "pipe") == (process.pid,)
        assert processes.pids_with_pipe("some-program", tmp_path / "other") == ()
        assert processes.pids_with_pipe("other-program", tmp_path / "pipe") == ()
        process.kill()
