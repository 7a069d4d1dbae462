"""Programs that stay load structlog without rich."""

import subprocess
import sys

import pytest

_REPORT = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


@pytest.mark.parametrize(
    "program", ["driver.kubeletplugin", "driver.mps", "driver.controller", "driver.webhook"]
)
def test_a_program_that_stays_does_not_load_rich(program: str) -> None:
    script = (
        "import runpy, sys\n"
        "sys.argv = ['x', '--help']\n"
        f"try: runpy.run_module('{program}', run_name='__main__', alter_sys=True)\n"
        "except SystemExit: pass\n"
        f"{_REPORT}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    modules = done.stdout.splitlines()[-1].split()
    assert "structlog" in modules
    assert "rich" not in modules
