"""Resetting a GPU by nvidia-smi, beside unmodified pynvml in another process: this one."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from simulator import layout
from tests.contract import worlds

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a reset is root's")
REFUSED = "The following GPUs could not be reset:\n  GPU 00000000:53:00.0: In use by another client"


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    with worlds.running(tmp_path, "hgx-h100") as library:
        yield library


def reset(base: Path, gpu: int) -> tuple[int, str]:
    """Return what nvidia-smi says once persistence mode does not keep the GPU open."""
    smi = layout.Layout(base).driver_root / "usr/bin/nvidia-smi"
    subprocess.run([str(smi), "-i", str(gpu), "-pm", "0"], capture_output=True, check=True)
    command = [str(smi), "-i", str(gpu), "--gpu-reset"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_gpu_with_an_nvml_handle_is_in_use_until_nvml_shuts_down(
    library: Path, tmp_path: Path
) -> None:
    with worlds.initialised(library):
        assert reset(tmp_path, 0)[0] == 0
        pynvml.nvmlDeviceGetHandleByIndex(0)
        status, text = reset(tmp_path, 0)
        assert (status, text[: len(REFUSED)]) == (255, REFUSED)
        assert reset(tmp_path, 1)[0] == 0
    assert reset(tmp_path, 0)[0] == 0
