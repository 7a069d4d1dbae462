"""The only module of the plugin that runs programs: NVIDIA's `nvidia-smi`, for what NVML cannot do.

NVML has no call for a GPU's time slice (NV-13), and none for its reset.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import driver_root
from driver.runtime.files import driver_programs

SMI = "nvidia-smi"
INTERVALS: Final = {"Default": 0, "Short": 1, "Medium": 2, "Long": 3}
"""Values of `compute-policy --set-timeslice`."""
RESET_S: Final = 60.0
"""Longest time for a reset; usually it takes a few seconds."""
_TIMEOUT_S = 10.0
_SHOWN = 300


class NvidiaSmi:
    """Implements `ports.TimeSlices` by the driver root's own nvidia-smi."""

    def __init__(self, root: driver_root.DriverRoot) -> None:
        self._root = root

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        """Set a GPU's time slice; `interval` is a name of INTERVALS.

        Raises:
            NodeFault: nvidia-smi is missing, hangs, or fails otherwise.
        """
        number = str(INTERVALS[interval])
        completed = self._run("compute-policy", "-i", gpu, "--set-timeslice", number)
        if completed.returncode == 0:
            return None
        output = _output_text(completed)
        if "not supported" in output.lower():
            return ports.Unsupported(output)
        raise errors.NodeFault(
            "set the time slice of", gpu, f"exit {completed.returncode}: {output}"
        )

    def reset(self, gpu: ids.GpuUuid) -> None:
        """Reset a GPU that is not in use, by this process' NVML included.

        Raises:
            NodeFault: nvidia-smi is missing, hangs, or refuses, with its output.
        """
        completed = self._run("--gpu-reset", "-i", gpu, limit_s=RESET_S)
        if completed.returncode != 0:
            raise errors.NodeFault(
                "reset", gpu, f"exit {completed.returncode}: {_output_text(completed)}"
            )

    def _run(
        self, *arguments: str, limit_s: float = _TIMEOUT_S
    ) -> "subprocess.CompletedProcess[str]":
        self._root.require(driver_root.NVML_LIBRARY)
        program = driver_programs.find_program(self._root.search, SMI)
        try:
            with Path(os.devnull).open("rb") as devnull:
                return program.call(
                    lambda: subprocess.run(
                        [program.path, *arguments],
                        env=dict(program.environment),
                        cwd="/",
                        stdin=devnull,
                        capture_output=True,
                        text=True,
                        errors="replace",
                        timeout=limit_s,
                        check=False,
                    )
                )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise errors.NodeFault("run", program.path, str(e)) from e


def _output_text(completed: "subprocess.CompletedProcess[str]") -> str:
    return " ".join((completed.stdout + completed.stderr).split())[:_SHOWN]
