"""A control daemon, NVIDIA's own or the simulated one, and shells that talk to it."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from driver.runtime.files import driver_programs, driver_search
from tests.fakes import waiting

CONTROL = "nvidia-cuda-mps-control"
DEVICE = "GPU-12345678-1234-1234-1234-123456789012"
NOBODY = 65534
_FILES = ("out", "errors")


class Done(NamedTuple):
    """Exit status of a shell and what it printed."""

    status: int
    output: str
    errors: str


class Daemons:
    """Daemons of one driver root in one pipe directory; `close` ends those that are left."""

    def __init__(self, search: driver_search.Search, folder: Path, device: str = DEVICE) -> None:
        self.pipe, self.log = folder / "pipe", folder / "log"
        for path in (self.pipe, self.log):
            path.mkdir()
            path.chmod(0o777)
        self.folder = folder
        self.search = search
        self._program = driver_programs.find_program(search, CONTROL)
        self._environment = {
            **self._program.environment,
            "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(self.log),
            "CUDA_VISIBLE_DEVICES": device,
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> "subprocess.Popen[bytes]":
        """Begin a daemon in the foreground, which may refuse to."""
        with contextlib.ExitStack() as files:
            paths = (self.folder / name for name in _FILES)
            out, errors = (files.enter_context(path.open("ab")) for path in paths)
            return self._begin(("-f", *options), subprocess.DEVNULL, (out, errors))

    def serving(self) -> "subprocess.Popen[bytes]":
        """Begin one, and wait until it answers."""
        process = self.start()
        waiting.until(lambda: self.ask("get_server_list").status == 0)
        return process

    @property
    def output(self) -> str:
        """All that daemons printed, which is a daemon's log."""
        return (self.folder / "out").read_text()

    @property
    def errors(self) -> str:
        """Return what they printed to their standard error."""
        return (self.folder / "errors").read_text()

    def ask(self, *commands: str, user: int = 0) -> Done:
        """Say commands as a shell of a user."""
        shell = self._begin((), subprocess.PIPE, None, user)
        typed = "".join(f"{command}\n" for command in commands).encode()
        output, errors = shell.communicate(typed, timeout=waiting.WITHIN_S)
        self._running.remove(shell)
        return Done(shell.returncode, output.decode(), errors.decode())

    @contextlib.contextmanager
    def idle_shell(self) -> Iterator[None]:
        """Have a shell connected that says nothing."""
        shell = self._begin((), subprocess.PIPE, None)
        try:
            yield
        finally:
            self._end(shell)

    def _begin(
        self,
        options: tuple[str, ...],
        typed: int,
        outputs: tuple[BinaryIO, BinaryIO] | None,
        user: int = 0,
    ) -> "subprocess.Popen[bytes]":
        out, errors = outputs or (subprocess.PIPE, subprocess.PIPE)
        process = self._program.call(
            lambda: subprocess.Popen(
                [self._program.path, *options],
                env=self._environment,
                cwd="/",
                stdin=typed,
                stdout=out,
                stderr=errors,
                user=user,
                group=user,
                extra_groups=[],
            ),
            {str(self.folder): self.folder},
            passable=self.folder,
        )
        self._running.append(process)
        return process

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=waiting.WITHIN_S)
        self._running.remove(process)

    def close(self) -> None:
        """End all that still run."""
        for process in tuple(self._running):
            self._end(process)
