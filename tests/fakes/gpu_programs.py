"""Programs on a GPU of a simulated machine, run as a test wants them: daemons, clients, tools."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulator import layout, sockets, state, store, wire
from tests.fakes import waiting

WITHIN_S = 20


@contextlib.contextmanager
def running(directory: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "simulator", "run", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready:")
        yield
    finally:
        process.terminate()
        process.communicate(timeout=WITHIN_S)


class Gpu:
    """One GPU and the programs that are run on it; `close` ends those that still run."""

    def __init__(self, directory: Path, minor: int) -> None:
        self.base = directory
        self.minor = minor
        own = Path(tempfile.mkdtemp(prefix="gpu-", dir=directory.parent))
        own.chmod(0o755)
        self.pipe, self.logs = own / "pipe", own / "logs"
        self.bin = layout.Layout(directory).driver_root / "usr/bin"
        self._clients: list[subprocess.Popen[str]] = []

    @property
    def uuid(self) -> str:
        return store.load(self.base).find(str(self.minor)).uuid

    @property
    def processes(self) -> list[state.Process]:
        machine = store.load(self.base)
        return machine.board(machine.find(str(self.minor))).processes

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "CUDA_VISIBLE_DEVICES": self.uuid,
            "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(self.logs),
            **more,
        }

    def run(self, program: str, *arguments: str, typed: str = "", **more: str) -> tuple[int, str]:
        """The exit status and everything printed."""
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            env=self.environment(**more),
            input=typed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        return done.returncode, done.stdout

    def daemon(self, *options: str, **more: str) -> int:
        """Start one in the background; its pid."""
        assert self.run("nvidia-cuda-mps-control", "-d", *options, **more) == (0, "")
        return self.daemon_pid

    @property
    def daemon_pid(self) -> int:
        return int((self.pipe / "nvidia-cuda-mps-control.pid").read_text())

    def say(self, *lines: str) -> list[str]:
        """Commands at the daemon's shell, and the lines of the answer."""
        status, text = self.run("nvidia-cuda-mps-control", typed="\n".join(lines) + "\n")
        assert status == 0, text
        return text.splitlines()

    def start(
        self, *options: str, user: int | None = None, **more: str
    ) -> tuple["subprocess.Popen[str]", dict[str, Any]]:
        """A client that holds what it got, and what it says it got."""
        process = self.begin(*options, user=user, **more)
        return process, said(process)

    def begin(self, *options: str, user: int | None = None, **more: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [str(self.bin / "simclient"), *options, "--hold", "60"],
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            text=True,
            user=user,
        )
        self._clients.append(process)
        return process

    def once(self, *options: str, **more: str) -> dict[str, Any]:
        """A client that ends at once."""
        _, text = self.run("simclient", *options, **more)
        answer: dict[str, Any] = json.loads(text.splitlines()[0])
        return answer

    def close(self) -> None:
        for process in self._clients:
            process.kill()
            process.communicate(timeout=WITHIN_S)
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
            pid = self.daemon_pid  # of one that died it is another's by now, maybe
            if Path(f"/proc/{pid}/exe").readlink().parent == self.bin:
                os.kill(pid, signal.SIGKILL)
        waiting.until(lambda: self.processes == [], WITHIN_S)


def said(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """The next line of a client."""
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def ended(process: "subprocess.Popen[str]") -> int:
    return process.wait(timeout=WITHIN_S)


def ask(gpu: Gpu, call: str, *arguments: object) -> list[str]:
    """One NVML call as root, straight at the node's socket; what it returns."""
    everything = wire.Request(
        frozenset(range(8)), call, tuple(map(str, arguments)), frozenset({1, 2})
    )
    with sockets.connect(layout.Layout(gpu.base).nvml_socket) as peer:
        peer.sendall(f"{wire.render_request(everything)}\n".encode())
        code, *values = wire.split(peer.makefile().readline().rstrip("\n"))
    assert code == "0", (call, code)
    return values
