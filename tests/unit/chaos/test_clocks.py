import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import clocks

PROGRAM = """
import subprocess, sys, time
for line in sys.stdin:
    before = time.monotonic()
    time.sleep(0.01)
    subprocess.run(["true"], timeout=5, check=True)
    print(time.time(), time.monotonic() - before, flush=True)
"""


@pytest.mark.timeout(60)
def test_a_clock_that_is_stepped_moves_nothing_that_is_monotonic(tmp_path: Path) -> None:
    faked = clocks.Faked(tmp_path / "clock", clocks.library(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=faked.variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reported = []
        for step in (0, 3600, -3600, 0):
            faked.step(step)
            process.stdin.write("\n")
            process.stdin.flush()
            reported.append([float(word) for word in process.stdout.readline().split()])
        process.stdin.close()
    first = reported[0][0]
    assert [round((wall - first) / 3600) for wall, _ in reported] == [0, 1, -1, 0]
    assert all(0 < passed < 30 for _, passed in reported)
