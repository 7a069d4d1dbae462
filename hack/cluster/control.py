"""Components as a person commands them: start, stop, kill, freeze, thaw."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster import cgroups, errors, layout, processes, toolchain

_INHERITED = ("HOME", "LANG", "PATH", "TZ")
MALLOC: Mapping[str, str] = {
    "MALLOC_ARENA_MAX": "2",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mmap_threshold=131072",
}
"""As in the published image (deploy/images/Dockerfile): no thread keeps what it freed, and what is
large goes back when it is freed. Left alone, glibc learns to take it from its heap, which keeps it.
"""


def record_path(where: layout.Layout, component: str, node: str | None) -> Path:
    """The record of a component."""
    return where.records / f"{processes.key(component, node)}.json"


def log_path(where: layout.Layout, component: str, node: str | None) -> Path:
    """The log of a component."""
    return where.logs / f"{processes.key(component, node)}.log"


def environment(programs: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A component's environment: little of the caller's, and the cluster's programs first."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    path = f"{programs}:{inherited.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}"
    return {"HOME": "/", **inherited, "PATH": path, **(more or {})}


def python() -> Mapping[str, str]:
    """As in an image; bytecode is kept in a folder of its own: compiling takes a second."""
    return {
        "PYTHONUNBUFFERED": "1",
        "PYTHONPYCACHEPREFIX": str(toolchain.bytecode()),
        **MALLOC,
    }


def launch(
    where: layout.Layout,
    component: str,
    node: str | None,
    argv: Sequence[str],
    more: Mapping[str, str] | None = None,
) -> None:
    """Start a component for the first time; `more` are variables of its environment."""
    spec = processes.Spec(
        component=component,
        node=node,
        argv=tuple(argv),
        env=environment(where.programs, {**python(), **(more or {})}),
        cwd=str(where.checkout),
        log=str(log_path(where, component, node)),
    )
    _start(where, spec)


def start(where: layout.Layout, component: str, node: str | None) -> None:
    """Start a component again as it was started before; one that runs is left alone."""
    record = read(where, component, node)
    if not processes.is_alive(record.process):
        _start(where, record.spec)


def _start(where: layout.Layout, spec: processes.Spec) -> None:
    path = record_path(where, spec.component, spec.node)
    group = cgroups.component_group(where.tag, spec.key)
    processes.Record(spec=spec).write(path)
    process = processes.spawn(spec, group)
    processes.Record(spec=spec, process=process).write(path)


def restart(
    where: layout.Layout,
    component: str,
    argv: Sequence[str],
    *,
    node: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Start a component anew, with another command line and more variables, from now on."""
    spec = read(where, component, node).spec
    stop(where, component, node)
    changed = {"argv": tuple(argv), "env": {**spec.env, **(variables or {})}}
    _start(where, spec.model_copy(update=changed))


def stop(where: layout.Layout, component: str, node: str | None) -> None:
    """SIGTERM, and wait for the end."""
    _end(where, component, node, signal.SIGTERM)


def kill(where: layout.Layout, component: str, node: str | None) -> None:
    """SIGKILL, and wait for the end."""
    _end(where, component, node, signal.SIGKILL)


def freeze(where: layout.Layout, component: str, node: str | None) -> None:
    """SIGSTOP: the component lives and does nothing."""
    _send(where, component, node, signal.SIGSTOP)


def thaw(where: layout.Layout, component: str, node: str | None) -> None:
    """SIGCONT."""
    _send(where, component, node, signal.SIGCONT)


def read(where: layout.Layout, component: str, node: str | None) -> processes.Record:
    """A component's record; an unknown name is refused with the known ones."""
    record = processes.Record.read(record_path(where, component, node))
    if record is None:
        raise errors.ClusterError(
            f"no component {processes.key(component, node)}; expected one of: {_known(where)}"
        )
    return record


def recorded(where: layout.Layout) -> tuple[tuple[str, str | None], ...]:
    """Every component that was started and not forgotten since, with its node."""
    records = (processes.Record.read(path) for path in sorted(where.records.glob("*.json")))
    return tuple((record.spec.component, record.spec.node) for record in records if record)


def forget(where: layout.Layout, component: str, node: str | None) -> None:
    """Remove the record of a component that has ended; its log stays."""
    record_path(where, component, node).unlink(missing_ok=True)


def pid(where: layout.Layout, component: str, node: str | None) -> int | None:
    """The process id of a component; none while it does not run."""
    process = read(where, component, node).process
    return process.pid if process is not None and processes.is_alive(process) else None


def condition(where: layout.Layout, component: str, node: str | None) -> str:
    """One word: running, frozen, stopped (on demand), or dead (by itself or by kill)."""
    record = processes.Record.read(record_path(where, component, node))
    if record is None or record.process is None:
        return "stopped"
    if not processes.is_alive(record.process):
        return "dead"
    return "frozen" if processes.is_frozen(record.process) else "running"


def tail(path: Path, lines: int = 15) -> str:
    """The end of a log."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _known(where: layout.Layout) -> str:
    names = sorted(path.stem for path in where.records.glob("*.json"))
    return ", ".join(name.replace(".", " ") for name in names) or "none"


def _end(where: layout.Layout, component: str, node: str | None, number: signal.Signals) -> None:
    record = read(where, component, node)
    if record.process is not None:
        processes.end(record.process, number)
    processes.Record(spec=record.spec).write(record_path(where, component, node))


def _send(where: layout.Layout, component: str, node: str | None, number: signal.Signals) -> None:
    process = read(where, component, node).process
    if process is None or not processes.send(process, number):
        raise errors.ClusterError(f"{processes.key(component, node)} does not run")
