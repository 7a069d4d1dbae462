"""The only module that runs programs: nvidia-cuda-mps-control, as a daemon and as its shell.

A daemon runs in a session of its own and writes to files only, so it outlives the supervisor; the
next one finds it by its command line and environment. Its end is detected by a pidfd, whether it is
our child or not.
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
"""The control program's message if another one is connected (535, 550)."""
_EXITS = {
    100: "the driver has no usable device",
    244: "the driver's libcuda cannot be loaded",
}
"""A control daemon's exit codes (580, 595), which it does not explain."""
OUTPUT = "control.log"
"""The daemon's output with -f: its log and its servers', which then have no files (535 to 580)."""
_MULTI_USER = {"-M", "-multiuser-server", "--multiuser-server"}
_LOG = "CUDA_MPS_LOG_DIRECTORY"
_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class DaemonPaths:
    """The directories of a daemon; `shm` is its own /dev/shm, if it has one."""

    pipe: Path
    log: Path
    shm: Path


class ControlOccupied(errors.NodeFault):
    """Another control program is connected: the daemon takes no command until it ends.

    `holders` are such programs, as far as visible.
    """

    def __init__(self, holders: tuple[mps_files.Holder, ...]) -> None:
        self.holders = holders
        programs = ", ".join(holder.describe() for holder in holders) or "not seen"
        super().__init__(
            "ask", CONTROL, f"another control program is connected to the daemon: {programs}"
        )


class DaemonHandle:
    """A daemon that runs, or ran: readable, for `poll`, once it has ended."""

    def __init__(self, pid: int, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid = pid
        self._child = child
        self._pidfd = os.pidfd_open(pid)

    @classmethod
    def find_running(cls, paths: DaemonPaths) -> Self | None:
        """Return the daemon running there, of any parent; None if none. Raises NodeFault."""
        for pid in processes.pids_with_pipe(CONTROL, paths.pipe):
            # The shell has the same environment, but not the option that makes a daemon.
            if "-f" not in processes.read_arguments(pid):
                continue
            try:
                handle = cls(pid)
            except ProcessLookupError:
                continue
            if pid in processes.pids_with_pipe(CONTROL, paths.pipe):
                return handle  # checked again: from here on the pid cannot be another's
            handle.close()
        return None

    def read_shape(self, paths: DaemonPaths) -> reconcile_policy.DaemonShape:
        """Return its start parameters, read from the process. Raises NodeFault."""
        visible = processes.read_environment(self.pid).get(_DEVICES, "")
        return reconcile_policy.DaemonShape(
            tuple(visible.split(",")),
            not _MULTI_USER.isdisjoint(processes.read_arguments(self.pid)),
            shm.is_process_shm(self.pid, paths.shm),
        )

    def fileno(self) -> int:
        """Return the pidfd."""
        return self._pidfd

    def exit_message(self) -> str | None:
        """Return how it ended; None while it runs."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not poll.poll(0):
            return None
        if self._child is None:
            return "the daemon ended"
        code = self._child.wait()
        if code < 0:
            return f"the daemon was killed by {signal.Signals(-code).name}"
        message = f"the daemon ended with exit code {code}"
        return f"{message}: {_EXITS[code]}" if code in _EXITS else message

    def kill(self) -> None:
        """Kill it; its end is detected later."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            return

    def close(self) -> None:
        """Release the process, dead or alive."""
        os.close(self._pidfd)


class ControlProgram:
    """The nvidia-cuda-mps-control of a driver root."""

    def __init__(self, search: driver_search.Search) -> None:
        self._search = search

    def start(self, shape: reconcile_policy.DaemonShape, paths: DaemonPaths) -> DaemonHandle:
        """Start a daemon; it reports itself whether it works. Raises NodeFault."""
        program = self._find()
        command = [program.path, "-f", *(["-M"] if shape.multi_user else [])]
        environment = {
            **program.environment,
            **_directories(paths),
            _DEVICES: ",".join(shape.devices),
        }
        memory = paths.shm if shape.own_shm else shm.TARGET
        binds = {**_shown_paths(paths), str(shm.TARGET): memory}
        try:
            with (
                (paths.log / OUTPUT).open("ab") as output,
                (paths.log / "stderr").open("wb") as error_log,
                Path(os.devnull).open("rb") as devnull,
            ):
                # A server runs as its clients' user, and opens its directories by their paths.
                return program.call(
                    lambda: _spawn(command, environment, (devnull, output, error_log)),
                    binds,
                    passable=paths.pipe.parent,
                )
        except OSError as e:
            raise errors.NodeFault("start", program.path, str(e)) from e

    def send(
        self, paths: DaemonPaths, commands: Iterable[str], within_s: float = REPLY_S
    ) -> str | None:
        """Return the daemon's reply to commands; None if it does not reply.

        Raises:
            ControlOccupied: another control program is connected to it.
            NodeFault: the program cannot be run.
        """
        program = self._find()
        text = "".join(f"{command}\n" for command in commands).encode()
        environment = {**program.environment, **_directories(paths)}
        try:
            completed = program.call(
                lambda: subprocess.run(
                    [program.path],
                    env=environment,
                    cwd="/",
                    input=text,
                    capture_output=True,
                    timeout=within_s,
                    check=False,
                ),
                _shown_paths(paths),
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as e:
            raise errors.NodeFault("run", program.path, str(e)) from e
        if completed.returncode == 0 and completed.stdout:
            return completed.stdout.decode(errors="replace")
        # Beside another one some succeed without a reply, others fail silently.
        holders = _control_holders(paths.pipe)
        if holders or _OCCUPIED in completed.stderr.decode(errors="replace"):
            raise ControlOccupied(holders)
        return "" if completed.returncode == 0 else None

    def kill_servers(self, paths: DaemonPaths) -> None:
        """Kill servers whose daemon is gone. Raises NodeFault."""
        for pid in processes.pids_with_pipe(SERVER, paths.pipe):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _find(self) -> driver_programs.Program:
        return driver_programs.find_program(self._search, CONTROL)


def _directories(paths: DaemonPaths) -> dict[str, str]:
    """Return the directory variables: the same paths in every file system."""
    return {processes.PIPE: str(paths.pipe), _LOG: str(paths.log)}


def _shown_paths(paths: DaemonPaths) -> dict[str, Path]:
    return {str(path): path for path in (paths.pipe, paths.log)}


def _control_holders(pipe: Path) -> tuple[mps_files.Holder, ...]:
    """Return the control programs on a pipe directory that are not daemons."""
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
