"""A simulated machine with the MPS supervisor's process on it, and programs that use it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from driver.devices import mps_files
from driver.mps import processes
from driver.mps.daemon import process as daemon_process
from driver.runtime.files import atomic, boot_id, failpoints, mounts
from simulator import builder, control, layout, store
from tests.fakes import packaged, waiting

HERE = Path(__file__).parents[2]
GIB = 1 << 30
WITHIN_S = 20
Process = subprocess.Popen[bytes]
BOOT_ID = boot_id.read_boot_id(Path("/"))


@contextlib.contextmanager
def machine(driver: str = "") -> Iterator[Path]:
    """A machine that runs; paths are as short as sockets want. Daemons' directories are mounts.

    Its `driver` is the profile's unless another version is named.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    with tempfile.TemporaryDirectory(prefix="sup-") as temporary_directory:
        Path(temporary_directory).chmod(0o755)
        base = Path(temporary_directory) / "m"
        made_of = store.create(base, "hgx-h100", "node-1")
        made_of.state.loaded_driver = driver
        store.save(base, made_of)
        builder.build(base, made_of)
        command = [sys.executable, "-m", "simulator", "run", str(base)]
        process = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready:")
            yield base
        finally:
            process.terminate()
            process.communicate(timeout=WITHIN_S)


class Node:
    """State directories on a machine; `close` ends every process that came of it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.own = Path(tempfile.mkdtemp(prefix="n-", dir=base.parent))
        self.own.chmod(0o755)
        self.layout = mps_files.Layout(self.own / "s")
        self.driver_root = layout.Layout(base).driver_root
        self.supervisors: list[Process] = []
        self._clients: list[tuple[int, subprocess.Popen[str]]] = []

    def uuid(self, minor: int) -> str:
        return store.load(self.base).find(str(minor)).uuid

    def supervise(self, *flags: str, begun_by: Callable[[], None] | None = None) -> Process:
        """Start a supervisor, whose process first calls `begun_by`; `logs` has what it writes."""
        command = [
            *(sys.executable, "-m", "driver.mps", f"--state-dir={self.own / 's'}"),
            *(f"--shm-dir={self.own / 's/shm'}", f"--driver-root={self.driver_root}"),
            *("--look-seconds=0.02", "--poll-seconds=0.1"),
            *flags,
        ]
        with (self.own / f"log-{len(self.supervisors)}").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=HERE,
                stderr=log,
                env=packaged.environment(),
                preexec_fn=begun_by,  # noqa: PLW1509 - before the tests start threads
            )
        self.supervisors.append(process)
        return process

    def logs(self) -> str:
        return "".join(path.read_text() for path in sorted(self.own.glob("log-*")))

    def want(self, minor: int, gib: int = 30, percentage: int = 50, **more: Any) -> str:
        """Have a daemon for a GPU wanted; the digest of the file."""
        uuid = self.uuid(minor)
        fields = {"key": uuid, "devices": (uuid,), "pinned_memory": (gib * GIB,), **more}
        return self.write(mps_files.Desired(active_thread_percentage=percentage, **fields))

    def write(self, desired: mps_files.Desired) -> str:
        data = desired.render()
        atomic.replace(self.layout.desired(desired.key), data, 0o600, failpoints.NO_OBSERVER)
        return mps_files.digest(data)

    def unwant(self, minor: int) -> None:
        self.layout.desired(self.uuid(minor)).unlink()

    def status(self, minor: int) -> mps_files.Status | None:
        path = self.layout.status(self.uuid(minor))
        try:
            return mps_files.Status.parse(path.read_bytes(), path.name)
        except FileNotFoundError:
            return None

    def serving(self, minor: int, digest: str) -> mps_files.Status:
        """The status, once the daemon serves with that file."""
        return self.told(minor, lambda status: status.serves(digest, BOOT_ID))

    def told(self, minor: int, holds: "waiting.Holds[mps_files.Status]") -> mps_files.Status:
        """The first status that `holds`."""
        return waiting.value(lambda: self.status(minor), holds, WITHIN_S)

    def daemons(self, minor: int) -> tuple[int, ...]:
        """Pids of the control daemons of a GPU's key."""
        pids_with_pipe = processes.pids_with_pipe(
            daemon_process.CONTROL, self.layout.pipe(self.uuid(minor))
        )
        return tuple(pid for pid in pids_with_pipe if "-f" in processes.read_arguments(pid))

    def control_log(self, minor: int) -> str:
        path = self.layout.log(self.uuid(minor)) / "control.log"
        return path.read_text() if path.exists() else ""

    def slow(self, call: str, milliseconds: int) -> None:
        """Have a call of the machine take that long; 0 ends it."""
        control.send(self.base, "slow", call, str(milliseconds))

    def environment(self, minor: int) -> dict[str, str]:
        pipe = self.layout.pipe(self.uuid(minor))
        return {processes.PIPE: str(pipe)}

    def ask(self, minor: int, command: str) -> str:
        """Return what the daemon answers, with nobody in between."""
        done = subprocess.run(
            [str(self.driver_root / "usr/bin" / daemon_process.CONTROL)],
            env=self.environment(minor),
            input=f"{command}\n",
            capture_output=True,
            text=True,
            check=True,
            timeout=WITHIN_S,
        )
        return done.stdout.strip()

    @contextlib.contextmanager
    def shell(self, minor: int) -> "Iterator[subprocess.Popen[bytes]]":
        """Have a control program that says nothing connected to the daemon."""
        process = subprocess.Popen(
            [str(self.driver_root / "usr/bin" / daemon_process.CONTROL)],
            env=self.environment(minor),
            stdin=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=WITHIN_S)

    def client(self, minor: int, *options: str) -> "tuple[subprocess.Popen[str], dict[str, Any]]":
        """A CUDA program that holds what it got, and what it says it got."""
        process = self.begin(minor, *options)
        assert process.stdout is not None
        document: dict[str, Any] = json.loads(process.stdout.readline())
        return process, document

    def begin(self, minor: int, *options: str, user: int | None = None) -> "subprocess.Popen[str]":
        """A CUDA program, not waited for; another `user` has the pipe in the daemon's own root."""
        who: tuple[str, ...] = ()
        environment = {**self.environment(minor), "PATH": os.defpath}
        if user is not None:
            (pid,) = self.daemons(minor)
            who = ("nsenter", f"--target={pid}", "--mount", "setpriv", f"--reuid={user}")
            who = (*who, f"--regid={user}", "--clear-groups")
            environment[processes.PIPE] = f"{self.driver_root}{environment[processes.PIPE]}"
        process = subprocess.Popen(
            [*who, str(self.driver_root / "usr/bin/simclient"), *options, "--hold", "forever"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._clients.append((minor, process))
        return process

    def release(self, minor: int) -> None:
        """Have nothing on a GPU any more."""
        self._end_clients(minor)
        self.layout.desired(self.uuid(minor)).unlink(missing_ok=True)
        waiting.until(lambda: self.status(minor) is None, WITHIN_S)

    def _end_clients(self, minor: int) -> None:
        ended = [_client for _client in self._clients if _client[0] == minor]
        for _, client in ended:
            client.kill()
            client.communicate(timeout=WITHIN_S)
        self._clients = [_client for _client in self._clients if _client not in ended]

    def close(self) -> None:
        for supervisor in self.supervisors:
            supervisor.kill()
            supervisor.wait(WITHIN_S)
        for minor in range(8):
            self._end_clients(minor)
        for run in self.layout.run_dir.glob("*/pipe"):
            for pid in processes.pids_with_pipe(daemon_process.CONTROL, run):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for mounted in (*self.own.glob("s/shm/*/shm"), *self.layout.run_dir.glob("*/pipe")):
            mounts.unmount(mounted)
