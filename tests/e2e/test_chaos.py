"""A dozen faults of each kind's turn, on a cluster of their own: `make chaos` in small."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_a_dozen_faults_under_load_break_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--quick"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert " 12 faults in " in done.stdout
