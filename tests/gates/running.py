"""Runs one command of a gate: its output is kept in a file, its last line told."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.gates import table

ROOT = Path(__file__).parents[2]
_LONGEST = 160


def run(command: table.Command) -> tuple[int, str]:
    """Exit code, and the last line that says something.

    Ctrl-C is passed on to the command and what it runs, and their end is waited for.
    """
    environment = {**os.environ, **dict(command.environment)}
    with tempfile.TemporaryFile("w+") as io_wrapper:
        process = subprocess.Popen(
            command.words,
            cwd=ROOT,
            env=environment,
            stdout=io_wrapper,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
            raise
        io_wrapper.seek(0)
        lines = [line.strip() for line in io_wrapper if line.strip()]
    if code:
        log = ROOT / ".cluster" / "gate.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text("\n".join(lines) + "\n")
    return code, (lines[-1] if lines else "")[:_LONGEST]
