"""Facts of MPS as the product runs it: the supervisor, its daemon, clients as in containers."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

from driver import clock, errors
from driver.devices import mps_files
from driver.kubeletplugin.prepare import mps_client
from driver.mps.daemon import process as daemon_process
from driver.resources.sharing import multi_user
from driver.runtime.files import boot_id, mounts
from hack.hardware import clients, facts, machine, mps_daemon

_GIB: Final = 1 << 30
_TENANT: Final = 65534
_INSIDE: Final = "/tmp/nvidia-mps"  # noqa: S108 - where containers have it
_MANY: Final = 61
_START_S, _POLL_S, _STATUS_S = 15.0, 0.05, 10.0


class Node:
    """A supervisor with directories of its own, and what the kubelet plugin does with it."""

    def __init__(self, target: machine.Machine) -> None:
        self._target = target
        self.folder = Path(tempfile.mkdtemp(prefix="ration-"))
        self.layout = mps_files.Layout(self.folder / "mps")
        time_source = clock.SystemClock()
        self.daemons = mps_client.MpsClient(
            self.folder / "mps", boot_id.read_boot_id(target.host), time_source
        )
        gpu = target.nvml().inventory().gpus[0]
        self.gpu = gpu.uuid
        self._server = multi_user.MpsServer(
            multi_user.major(gpu.driver_version), gpu.cuda_capability
        )
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = "import sys; from driver.mps.__main__ import main; sys.exit(main(sys.argv[1:]))"
        state = self.folder / "mps"
        with (self.folder / "supervisor.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-c", command, f"--state-dir={state}"),
                    *(f"--shm-dir={state / 'shm'}", f"--driver-root={self._target.setting}"),
                    *(f"--host-root={self._target.host}", "--metrics-address=127.0.0.1:0"),
                    "--poll-seconds=0.2",
                ],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                cwd="/",
                stdout=log,
                stderr=log,
            )  # in the step's session, with which it is killed

    def restart(self) -> None:
        """Kill the supervisor and start another."""
        self._process.kill()
        self._process.wait()
        self._process = self._start()

    def ensure(self, gib: int, percentage: int) -> float:
        """Have a daemon with these limits; the seconds until it serves. Raises NodeFault.

        It is for several users where the driver has that.
        """
        begun = time.monotonic()
        self.daemons.ensure(
            mps_files.Desired(
                key=self.gpu,
                devices=(self.gpu,),
                pinned_memory=(gib * _GIB,),
                active_thread_percentage=percentage,
                multi_user=self._server.serves_several(None),
                shm_bytes=4 * _GIB,
            )
        )
        return _since(begun)

    @property
    def binds(self) -> dict[str, Path]:
        """The mounts of a client's container."""
        return {_INSIDE: self.layout.pipe(self.gpu), "/dev/shm": self.shm}  # noqa: S108

    @property
    def shm(self) -> Path:
        """The daemon's shared memory."""
        return self.folder / "mps/shm" / self.gpu / "shm"

    def client(self, action: str, *words: str, **options: Any) -> clients.Client:  # noqa: ANN401
        """Start a client as in a container."""
        variables = {mps_daemon.PIPE: _INSIDE, **options.pop("variables", {})}
        binds = options.pop("binds", self.binds)
        return clients.Client(
            self._target, action, *words, variables=variables, binds=binds, **options
        )

    def ask(self, action: str, *words: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        """Run a client to its end; the last line that it printed."""
        with self.client(action, *words, **options) as client:
            return clients.last(client)

    def refusal(self, gib: int, percentage: int) -> str:
        """Have a daemon and a client; say why that cannot be, "" where it can.

        The daemon's log is kept where the client is refused.
        """
        try:
            self.ensure(gib, percentage)
        except errors.NodeFault as fault:
            return str(fault)
        refusal = str(self.ask("info").get("refusal", ""))
        if refusal:
            log = self.layout.log(self.gpu) / daemon_process.OUTPUT
            self._target.keep("supervised-control.log", log.read_text(errors="replace"))
        return refusal

    def status(self) -> dict[str, Any]:
        """The daemon's status, as the supervisor wrote it."""
        status = self.daemons.status(self.gpu)
        if status is None:
            return {}
        return {
            "state": status.state.value,
            "clients": status.clients,
            "processes": [process.pid for process in status.processes],
            "problem": status.problem,
        }

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first status that `holds`, else the last one within 10 s."""
        ends = time.monotonic() + _STATUS_S
        while not holds(status := self.status()) and time.monotonic() < ends:
            time.sleep(_POLL_S)
        return status

    def log(self) -> str:
        """The supervisor's log."""
        return (self.folder / "supervisor.log").read_text(errors="replace")

    def __enter__(self) -> Self:
        ends = time.monotonic() + _START_S
        while not self.layout.run_dir.is_dir():
            if self._process.poll() is not None or time.monotonic() > ends:
                self._process.kill()
                raise errors.NodeFault("start", "the supervisor", self.log()[-500:])
            time.sleep(_POLL_S)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(errors.NodeFault):
            self.daemons.remove(self.gpu)
        self._process.terminate()
        try:
            self._process.wait(_START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if not mounts.mounts_below(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)


def supervisor(target: machine.Machine) -> Iterator[facts.Fact]:
    """Have the supervisor run a daemon: limits, faults, ends and takeovers under clients."""
    with Node(target) as node:
        yield facts.Fact("supervisor.apart-without-mps", clients.ask(target, "info", binds={}))
        begun = time.monotonic()
        refusal = node.refusal(4, 50)
        yield facts.Fact("supervisor.client-after-s", _since(begun), refusal)
        if refusal:
            return
        yield from _shares(node)
        yield from _read_only(node)
        yield from _faults(node)
        yield from _ends(node)
        node.daemons.remove(node.gpu)
        yield facts.Fact("supervisor.removed", not node.layout.run(node.gpu).exists())
        target.keep("supervisor-log.txt", node.log())


def _shares(node: Node) -> Iterator[facts.Fact]:
    for name, variables in _SHARES.items():
        shown = node.ask("info", variables=variables)
        filled = node.ask("fill", variables=variables)
        yield facts.Fact(f"supervisor.share-{name}", {**shown, **filled})
    yield facts.Fact("supervisor.tenant", node.ask("info", uid=_TENANT))
    with node.client("hold", str(_GIB)) as held:
        held.line()
        status = node.until(lambda status: status.get("clients") == 1)
        seconds = node.ensure(8, 80)
        shown = {**node.ask("info"), **node.ask("fill")}
        value = {"seconds": seconds, "status": status, "later client": shown}
        yield facts.Fact("supervisor.changed-under-a-client", value)


_SHARES: Final = {
    "ceiling": {},
    "own": {
        mps_daemon.MEMORY: "0=2G",
        mps_daemon.THREADS: "25",
    },
    "greedy": {
        mps_daemon.MEMORY: "0=100G",
        mps_daemon.THREADS: "100",
    },
}


def _read_only(node: Node) -> Iterator[facts.Fact]:
    """Let clients connect through a read-only mount, as containers have it."""
    shown = node.folder / "shown"
    shown.mkdir()
    try:
        for words in (["--bind", str(node.layout.pipe(node.gpu))], ["-o", "remount,bind,ro"]):
            subprocess.run(["mount", *words, str(shown)], check=True)
        binds = {**node.binds, _INSIDE: shown}
        value = {name: node.ask("info", binds=binds, uid=uid) for name, uid in _USERS.items()}
        yield facts.Fact("supervisor.read-only-pipe", value)
    finally:
        mounts.unmount(shown)


_USERS: Final = {"root": None, "tenant": _TENANT}


def _faults(node: Node) -> Iterator[facts.Fact]:
    with node.client("spin", "15") as neighbour:
        neighbour.line()
        node.ask("fault")
        during = node.status()
        seen = clients.last(neighbour)
    after = node.until(lambda status: status.get("state") == "ready" and not status["clients"])
    value = {"neighbour": seen, "during": during, "after": after, "next": node.ask("info")}
    yield facts.Fact("supervisor.client-fault", value)


def _ends(node: Node) -> Iterator[facts.Fact]:
    """Kill the supervisor, then the daemon, under a client."""
    with node.client("spin", "8") as client:
        client.line()
        node.restart()
        seen = clients.last(client)
    yield facts.Fact("supervisor.restarted-under-a-client", {"client": seen, **node.status()})
    with node.client("spin", "20") as client:
        client.line()
        node.until(lambda status: status.get("clients") == 1)
        status = node.daemons.status(node.gpu)
        if status is not None and status.pid is not None:
            os.kill(status.pid, signal.SIGKILL)
        seen = clients.last(client)
        during = node.until(lambda status: status.get("state") == "failed")
    begun = time.monotonic()
    after = node.until(lambda status: status.get("state") == "ready")
    value = {
        "client": seen,
        "during": during,
        "after": after,
        "s": _since(begun),
        "next": node.ask("info"),
    }
    yield facts.Fact("supervisor.daemon-killed", value)


def containers(target: machine.Machine) -> Iterator[facts.Fact]:
    """Let clients apart, as in containers, use page-locked memory with and without a shared shm."""
    with Node(target) as node:
        if refusal := node.refusal(100, 100):
            yield facts.Fact("container.shm-shared", problem=refusal)
            return
        own = node.folder / "own-shm"
        own.mkdir(mode=0o777)
        binds = {**node.binds}
        without = {_INSIDE: binds[_INSIDE], "/dev/shm": own}  # noqa: S108
        for name, mounted in (("shared", binds), ("own", without)):
            value = {
                size: node.ask("pin", str(number), binds=mounted)
                for size, number in (("64 MiB", _GIB >> 4), ("2 GiB", 2 * _GIB))
            }
            files = sorted(path.name for path in mounted["/dev/shm"].iterdir())  # noqa: S108
            yield facts.Fact(f"container.shm-{name}", {**value, "files": files})
        with node.client("hold", "0") as client:
            client.line()
            files = sorted(path.name for path in node.shm.iterdir())
            yield facts.Fact("container.shm-files-of-a-client", files)
        logs = {path.name: path.stat().st_size for path in node.layout.log(node.gpu).iterdir()}
        yield facts.Fact("supervisor.log-files", logs)


def many(target: machine.Machine) -> Iterator[facts.Fact]:
    """Start clients until the daemon takes no more."""
    with Node(target) as node:
        if refusal := node.refusal(2, 100):
            yield facts.Fact("mps.many-clients", problem=refusal)
            return
        answers: list[dict[str, Any]] = []
        with contextlib.ExitStack() as ends:
            begun = time.monotonic()
            while len(answers) < _MANY and "refusal" not in (answers or [{}])[-1]:
                client = ends.enter_context(node.client("hold"))
                answers.append(client.line(20.0))
            held = sum("held" in answer for answer in answers)
            value = {
                "clients": held,
                "then": answers[-1],
                "seconds": _since(begun),
                "status": node.until(lambda status: status.get("clients") == held)["clients"],
            }
        yield facts.Fact("mps.many-clients", value)
        time.sleep(1.0)
        yield facts.Fact("mps.after-many-clients", node.ask("info"))


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)
