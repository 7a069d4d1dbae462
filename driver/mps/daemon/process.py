"""The one place that runs programs: nvidia-cuda-mps-control, as a daemon and as its shell.

A daemon runs in a session of its own and writes to files only, so it outlives the supervisor; the
next one finds it by its command line and environment. Its end is told by a pidfd, be it our child
or not.
"""

import os
import select
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from driver import errors
from driver.devices import mps_files
from driver.mps import processes
from driver.mps.daemon import reconcile_policy, shm
from driver.runtime.files import driver_programs, driver_search

CONTROL = "nvidia-cuda-mps-control"
SERVER = "nvidia-cuda-mps-server"
REPLY_S = 5.0
"""Longest wait for an answer."""
_OCCUPIED = "Cannot send command"
"""The control program's words where another one is connected (535, 550)."""
_EXITS = {
    100: "the driver has no usable device",
    244: "the driver's libcuda cannot be loaded",
}
"""A control daemon's exit codes (580, 595), which it says no word about."""
OUTPUT = "control.log"
"""The daemon's output with -f: its log, which it then writes to no file (535, 550)."""
_MULTI_USER = {"-M", "-multiuser-server", "--multiuser-server"}
_LOG = "CUDA_MPS_LOG_DIRECTORY"
_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class DaemonPaths:
    """The directories a daemon works in; `shm` is its own /dev/shm, when it has one."""

    pipe: Path
    log: Path
    shm: Path


class ControlOccupied(errors.NodeFault):
    """Another control program is connected: the daemon takes no command until it ends.

    `holders` are such programs, as far as they are seen.
    """

    def __init__(self, holders: tuple[mps_files.Holder, ...]) -> None:
        self.holders = holders
        who = ", ".join(holder.describe() for holder in holders) or "not seen"
        super().__init__(
            "ask", CONTROL, f"another control program is connected to the daemon: {who}"
        )


class DaemonHandle:
    """A daemon that runs, or ran: readable, for `poll`, once it has ended."""

    def __init__(self, pid: int, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid = pid
        self._child = child
        self._pidfd = os.pidfd_open(pid)

    @classmethod
    def find_running(cls, place: DaemonPaths) -> Self | None:
        """The daemon that runs there, whoever started it; None when none does. Raises NodeFault."""
        for pid in processes.pids_with_pipe(CONTROL, place.pipe):
            # The shell has the same environment, but not the option that makes a daemon.
            if "-f" not in processes.read_arguments(pid):
                continue
            try:
                found = cls(pid)
            except ProcessLookupError:
                continue
            if pid in processes.pids_with_pipe(CONTROL, place.pipe):
                return found  # checked again: from here on the pid cannot be another's
            found.close()
        return None

    def read_shape(self, place: DaemonPaths) -> reconcile_policy.DaemonShape:
        """What it was started with, read off the process itself. Raises NodeFault."""
        visible = processes.read_environment(self.pid).get(_DEVICES, "")
        return reconcile_policy.DaemonShape(
            tuple(visible.split(",")),
            not _MULTI_USER.isdisjoint(processes.read_arguments(self.pid)),
            shm.is_process_shm(self.pid, place.shm),
        )

    def fileno(self) -> int:
        """The pidfd."""
        return self._pidfd

    def exit_message(self) -> str | None:
        """In words, how it ended; None while it runs."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not poll.poll(0):
            return None
        if self._child is None:
            return "the daemon ended"
        code = self._child.wait()
        if code < 0:
            return f"the daemon was killed by {signal.Signals(-code).name}"
        words = f"the daemon ended with exit code {code}"
        return f"{words}: {_EXITS[code]}" if code in _EXITS else words

    def kill(self) -> None:
        """End it by force; that it has ended is seen later."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            return

    def close(self) -> None:
        """Let go of the process, dead or alive."""
        os.close(self._pidfd)


class ControlProgram:
    """nvidia-cuda-mps-control of a driver root."""

    def __init__(self, place: driver_search.Search) -> None:
        self._search = place

    def start(self, shape: reconcile_policy.DaemonShape, place: DaemonPaths) -> DaemonHandle:
        """Begin a daemon there; whether it works is for it to say. Raises NodeFault."""
        program = self._find()
        command = [program.path, "-f", *(["-M"] if shape.multi_user else [])]
        environment = {
            **program.environment,
            **_directories(place),
            _DEVICES: ",".join(shape.devices),
        }
        memory = place.shm if shape.own_shm else shm.TARGET
        shown = {**_shown_paths(place), str(shm.TARGET): memory}
        try:
            with (
                (place.log / OUTPUT).open("ab") as said,
                (place.log / "stderr").open("wb") as words,
                Path(os.devnull).open("rb") as nothing,
            ):
                # A server runs as its clients' user, and opens its directories by their paths.
                return program.call(
                    lambda: _spawn(command, environment, (nothing, said, words)),
                    shown,
                    passable=place.pipe.parent,
                )
        except OSError as e:
            raise errors.NodeFault("start", program.path, str(e)) from e

    def send(
        self, place: DaemonPaths, commands: Iterable[str], within_s: float = REPLY_S
    ) -> str | None:
        """What the daemon answers to commands; None when it does not answer.

        Raises:
            Occupied: another control program is connected to it.
            NodeFault: the program cannot be run.
        """
        program = self._find()
        text = "".join(f"{command}\n" for command in commands).encode()
        environment = {**program.environment, **_directories(place)}
        try:
            done = program.call(
                lambda: subprocess.run(
                    [program.path],
                    env=environment,
                    cwd="/",
                    input=text,
                    capture_output=True,
                    timeout=within_s,
                    check=False,
                ),
                _shown_paths(place),
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as e:
            raise errors.NodeFault("run", program.path, str(e)) from e
        if done.returncode == 0 and done.stdout:
            return done.stdout.decode(errors="replace")
        # Beside another one some end well and without an answer, others without a word.
        others = _control_holders(place.pipe)
        if others or _OCCUPIED in done.stderr.decode(errors="replace"):
            raise ControlOccupied(others)
        return "" if done.returncode == 0 else None

    def kill_servers(self, place: DaemonPaths) -> None:
        """Kill servers whose daemon is gone. Raises NodeFault."""
        for pid in processes.pids_with_pipe(SERVER, place.pipe):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _find(self) -> driver_programs.Program:
        return driver_programs.find_program(self._search, CONTROL)


def _directories(place: DaemonPaths) -> dict[str, str]:
    """Where they are, for whoever runs: the same paths in every file system."""
    return {processes.PIPE: str(place.pipe), _LOG: str(place.log)}


def _shown_paths(place: DaemonPaths) -> dict[str, Path]:
    return {str(path): path for path in (place.pipe, place.log)}


def _control_holders(pipe: Path) -> tuple[mps_files.Holder, ...]:
    """The control programs on a pipe directory that are no daemons."""
    return tuple(
        mps_files.Holder(pid=pid, user=processes.effective_user(pid))
        for pid in processes.pids_on_pipe(CONTROL, pipe)
        if "-f" not in processes.read_arguments(pid)
    )


def _spawn(
    command: list[str], environment: dict[str, str], files: tuple[BinaryIO, BinaryIO, BinaryIO]
) -> DaemonHandle:
    child = subprocess.Popen(
        command,
        env=environment,
        cwd="/",
        stdin=files[0],
        stdout=files[1],
        stderr=files[2],
        start_new_session=True,
    )
    return DaemonHandle(child.pid, child)
