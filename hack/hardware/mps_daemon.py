"""A control daemon of NVIDIA's MPS with directories of its own, for steps that try it."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from driver import errors
from hack.hardware import machine

CONTROL: Final = "nvidia-cuda-mps-control"
PIPE: Final = "CUDA_MPS_PIPE_DIRECTORY"
MEMORY: Final = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
THREADS: Final = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
"""A client's own limits."""
_LOG, _VISIBLE = "CUDA_MPS_LOG_DIRECTORY", "CUDA_VISIBLE_DEVICES"
_READY_S = 3.0
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Daemon:
    """A control daemon with directories of its own; `with` ends it and its servers."""

    def __init__(self, target: machine.Machine, *options: str, visible: str = "0") -> None:
        self._target = target
        self.folder = Path(tempfile.mkdtemp(prefix="ration-mps-"))
        self.folder.chmod(0o755)
        self.pipe, self.log = self.folder / "pipe", self.folder / "log"
        for folder in (self.pipe, self.log):
            folder.mkdir()
            folder.chmod(0o1777)
        self.variables = {PIPE: str(self.pipe), _LOG: str(self.log)}
        self.output = self.folder / "stdout"
        with self.output.open("wb") as output, (self.folder / "stderr").open("wb") as problems:
            self._process = self.command("-f", *options, more={_VISIBLE: visible}).start(
                stdin=subprocess.DEVNULL, stdout=output, stderr=problems
            )

    def ready(self) -> str:
        """Wait until its socket is there; how it ended where it did, "" otherwise."""
        ends = time.monotonic() + _READY_S
        while time.monotonic() < ends and not (self.pipe / "control").exists():
            if self._process.poll() is not None:
                text = (self.folder / "stderr").read_text(errors="replace").strip()
                return f"exit status {self._process.returncode}: {text}"
            time.sleep(0.05)
        return "" if (self.pipe / "control").exists() else "no socket within 3 s"

    def command(
        self, *options: str, uid: int = 0, more: Mapping[str, str] = NOTHING
    ) -> machine.Command:
        """Return the control program on this daemon's directories, as a user."""
        everything = {**self.variables, **more}
        return machine.Command(self._target, CONTROL, options, everything, (self.folder,), uid)

    def say(self, *commands: str, uid: int = 0, limit_s: float = 5.0) -> machine.Done:
        """Run the control program as a shell, with these commands. Raises NodeFault."""
        text = "".join(f"{command}\n" for command in commands)
        return self.command(uid=uid).run(limit_s, text)

    def names(self) -> list[str]:
        """The files of the pipe directory."""
        return sorted(path.name for path in self.pipe.iterdir())

    def servers(self) -> list[int]:
        """Process ids of its servers."""
        return [int(word) for word in self.say("get_server_list").output.split() if word.isdigit()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(errors.NodeFault):
            self.say("quit -t 2")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End it by force."""
        self._process.kill()
        self._process.wait()

    def ended(self, within_s: float) -> int | None:
        """Wait for its end; the exit status, None where it runs on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(within_s)
        return None
