"""The cluster's processes: started apart from us, found again, signalled only if they are ours.

A process is known by its id, its start time and the boot: an id alone may have been given to
another program meanwhile.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pydantic

from hack.cluster import errors

BOOT = Path("/proc/sys/kernel/random/boot_id")
PATIENCE_S = 30.0
# The inner shell enters its group before it becomes the program, so no child can escape the
# group; the outer one tells the id and ends, so the program is nobody's child.
_LAUNCH = '( echo 0 >"$0" && exec "$@" ) >>"$LAUNCH_LOG" 2>&1 </dev/null & echo $!'


class Identity(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Which process: its id, its start in clock ticks since boot, and the boot."""

    pid: int
    started: int
    boot: str


class Spec(pydantic.BaseModel, frozen=True, extra="forbid"):
    """How a component is started; `env` is its whole environment."""

    component: str
    node: str | None
    argv: tuple[str, ...]
    env: Mapping[str, str] = pydantic.Field(default_factory=dict)
    cwd: str
    log: str

    @property
    def key(self) -> str:
        """The component's name in files and groups."""
        return key(self.component, self.node)


class Record(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A component as kept on disk; no process once it was stopped."""

    spec: Spec
    process: Identity | None = None

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The record in a file, if there is one."""
        try:
            return cls.model_validate_json(path.read_text())
        except FileNotFoundError:
            return None

    def write(self, path: Path) -> None:
        """Keep the record, whole or not at all."""
        part = path.with_suffix(".part")
        part.write_text(self.model_dump_json(indent=2) + "\n")
        part.replace(path)


def key(component: str, node: str | None) -> str:
    """`kubelet.node-0`, or `etcd`."""
    return component if node is None else f"{component}.{node}"


def boot() -> str:
    """The id of this boot."""
    return BOOT.read_text().strip()


def parse_stat(text: str) -> tuple[str, int]:
    """State letter and start time from /proc/PID/stat; the name in it may hold anything."""
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], int(fields[19])


def identify(pid: int) -> Identity | None:
    """The process that has this id now; none if it ended or only waits to be reaped."""
    try:
        letter, started = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if letter in "ZX" else Identity(pid=pid, started=started, boot=boot())


def is_alive(process: Identity | None) -> bool:
    """Whether exactly this process runs (a stopped one does)."""
    return process is not None and identify(process.pid) == process


def is_frozen(process: Identity) -> bool:
    """Whether the process was stopped by SIGSTOP."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return parse_stat(Path(f"/proc/{process.pid}/stat").read_text())[0] == "T"
    return False


def spawn(spec: Spec, group: Path) -> Identity:
    """Start a component in its group; its output goes to its log."""
    environment = {**spec.env, "LAUNCH_LOG": spec.log}
    command = ["/bin/sh", "-c", _LAUNCH, str(group / "cgroup.procs"), *spec.argv]
    answer = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        cwd=spec.cwd,
        start_new_session=True,
    )
    process = identify(int(answer.stdout))
    if process is None:
        raise errors.ClusterError(f"{spec.key} ended at once; see {spec.log}")
    return process


def send(process: Identity, number: signal.Signals) -> bool:
    """Signal exactly this process; False if it is gone."""
    with _opened(process) as descriptor:
        if descriptor is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)
            return True
    return False


def end(process: Identity, number: signal.Signals, patience: float = PATIENCE_S) -> None:
    """Signal a process and wait until it is gone."""
    with _opened(process) as descriptor:
        if descriptor is None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)
            if number is signal.SIGTERM:
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(patience * 1000):
            raise errors.NotInTimeError(f"process {process.pid} ends on {number.name}", patience)


@contextlib.contextmanager
def _opened(process: Identity) -> Iterator[int | None]:
    """A descriptor of the process; it cannot come to mean another one."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor if is_alive(process) else None
    finally:
        os.close(descriptor)


def wait_until_gone(pids: frozenset[int], patience: float) -> frozenset[int]:
    """Wait until processes ended; those still there are returned."""
    limit = time.monotonic() + patience
    left = pids
    while left and time.monotonic() < limit:
        left = frozenset(pid for pid in left if identify(pid) is not None)
        time.sleep(0.02)
    return left
