"""The one room of the plugin that runs programs: NVIDIA's `nvidia-smi`, for what NVML cannot do.

NVML has no call for a GPU's time slice (node-layer §4).
"""

import os
import subprocess
from typing import Final

from driver import errors, ids
from driver.kubeletplugin import driver_root, ports

SMI = "usr/bin/nvidia-smi"
INTERVALS: Final = {"Default": 0, "Short": 1, "Medium": 2, "Long": 3}
"""As `compute-policy --set-timeslice` takes them."""
_TIMEOUT_S = 10.0
_SHOWN = 300


class Smi:
    """Implements `ports.TimeSlices` by the driver root's own nvidia-smi and library."""

    def __init__(self, root: driver_root.DriverRoot) -> None:
        self._root = root

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        """Set a GPU's time slice; `interval` is a name of INTERVALS.

        Raises:
            NodeFault: nvidia-smi is not there, hangs, or fails otherwise.
        """
        number = str(INTERVALS[interval])
        done = self._run("compute-policy", "-i", gpu, "--set-timeslice", number)
        if done.returncode == 0:
            return None
        words = " ".join((done.stdout + done.stderr).split())[:_SHOWN]
        if "not supported" in words.lower():
            return ports.Unsupported(words)
        raise errors.NodeFault("set the time slice of", gpu, f"exit {done.returncode}: {words}")

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        program = self._root.resolve(SMI)
        library = self._root.require(driver_root.NVML_LIBRARY)
        try:
            return subprocess.run(
                [str(program), *arguments],
                env={"PATH": os.defpath, "LD_LIBRARY_PATH": str(library.parent)},
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as e:
            raise errors.NodeFault("run", str(program), str(e)) from e
