"""Docker: the daemon that answers, or one of our own below the cache.

One of our own is for machines where no service manager runs Docker. It touches nothing of the
machine but what containers need: no firewall rules, no default bridge, no forwarding. `down` ends
it with the last cluster; its images stay for the next time.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from hack.cluster import errors, mounts, processes
from hack.kind import docker, layout, runtime

_START_S = 60.0
_NETWORK = "kind"
"""kind's own network, which it leaves behind."""


def choose(cache: layout.Cache, *, own: bool, recorded: str | None = None) -> docker.Docker:
    """The daemon to work with; a ClusterError that says what to do if there is none.

    `recorded` is the address of the daemon that has the cluster, where it is known. Otherwise the
    client's own default comes first, unless `own` asks for ours, which is started if need be.
    """
    ours = f"unix://{cache.socket}"
    if own:
        if docker.answers(ours):
            start(cache)
        return docker.Docker(ours)
    candidates = [recorded] if recorded is not None else ["", ours]
    reasons = [docker.answers(host) for host in candidates]
    for host, reason in zip(candidates, reasons, strict=True):
        if not reason:
            return docker.Docker(host)
    raise errors.ClusterError(refusal(reasons[0]))


def refusal(reason: str) -> str:
    """What to do where no daemon answers."""
    if reason == "not installed":
        return "Docker is not installed: apt-get install docker.io (or docs.docker.com/engine)"
    return (
        f"no Docker daemon answers ({reason}): start it (systemctl start docker), or have one of "
        "our own run for the time of the cluster: make kind-up DAEMON=1"
    )


def command(cache: layout.Cache) -> tuple[str, ...]:
    """How a daemon of our own is started."""
    folder = cache.daemon
    return (
        "dockerd",
        f"--data-root={folder / 'data'}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'pid'}",
        f"--host=unix://{cache.socket}",
        "--bridge=none",
        "--iptables=false",
        "--ip-forward=false",
        "--log-level=warn",
        f"--add-runtime=ration={folder / 'runtime'}",
        "--default-runtime=ration",
    )


def start(cache: layout.Cache) -> None:
    """Start a daemon of our own, and wait until it answers."""
    _check(cache)
    folder = cache.daemon
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "runtime"
    program.write_text(runtime.render(sys.executable))
    program.chmod(0o755)
    (folder / "pid").unlink(missing_ok=True)
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command(cache),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    identity = processes.identify(process.pid)
    (folder / "process.json").write_text(identity.model_dump_json() if identity else "null")
    deadline = time.monotonic() + _START_S
    while docker.answers(f"unix://{cache.socket}"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise errors.ClusterError(_failure(log))
        time.sleep(0.3)


def _check(cache: layout.Cache) -> None:
    if os.geteuid() != 0:
        raise errors.ClusterError("a Docker daemon of our own needs root: sudo -E make kind-up")
    if shutil.which("dockerd") is None:
        raise errors.ClusterError("this machine lacks dockerd: apt-get install docker.io")
    if len(os.fsencode(cache.socket)) > layout.SOCKET_BYTES:
        raise errors.ClusterError(
            f"{cache.socket} is too long for a socket: set XDG_CACHE_HOME to a shorter folder"
        )


def _failure(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return f"dockerd did not start; the last line of {log}: {lines[-1] if lines else '(empty)'}"


def is_own(daemon: docker.Docker, cache: layout.Cache) -> bool:
    """Whether it is the one that `start` starts."""
    return daemon.host == f"unix://{cache.socket}"


def stop(daemon: docker.Docker, cache: layout.Cache) -> bool:
    """End a daemon of our own, unless it has containers; whether it was ended."""
    if not is_own(daemon, cache) or daemon.containers():
        return False
    with contextlib.suppress(errors.CommandFailedError):
        daemon.run("network", "rm", _NETWORK)
    running = process(cache)
    if running is not None:
        processes.end(running, signal.SIGTERM)
    left = mounts.undo(cache.daemon)
    if left:
        raise errors.ClusterError(f"still mounted: {', '.join(map(str, left))}")
    return True


def process(cache: layout.Cache) -> processes.Identity | None:
    """The daemon of our own that was started last, if it is on record."""
    with contextlib.suppress(OSError, ValueError):
        document = json.loads((cache.daemon / "process.json").read_text())
        return processes.Identity.model_validate(document) if document else None
    return None
