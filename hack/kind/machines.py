"""Simulated GPUs of kind's workers: a machine each, run by a service of the worker itself.

The service runs in the node's own process numbers, by which a GPU names its processes, and begins
and ends with the node: a node whose container is started again has its GPUs again. For the GPUs
that is a reboot of their machine. A node of kind has no Python, so the service brings its own.
"""

import functools
import importlib.metadata
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from hack.cluster import control, errors, shell, toolchain, versions
from hack.image import build, python
from hack.kind import docker, layout

UNIT = "ration-gpus.service"
_BOOT = "ration-gpus-boot.service"
_UNITS = Path("/etc/systemd/system")
_KEY = Path("/etc/ration-gpus")
"""Names the runtime that a node's service was given."""
_NEEDED = ("pydantic", "pyyaml", "typer")
"""What the simulator imports beside the standard library."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EMPTY = ("dev", "machine", "proc", "run", "sys", "tmp")
_VARIABLES = (
    "LD_LIBRARY_PATH=/usr/local/lib",
    "PYTHONPATH=/src",
    "PYTHONDONTWRITEBYTECODE=1",
    "HOME=/tmp",
    *(f"{name}={value}" for name, value in control.MALLOC.items()),
)


def create(where: layout.Layout, worker: str, profile: str) -> None:
    """Lay out a worker's machine; one that is there stays as it is."""
    folder = where.machine(worker)
    if (folder / "machine.json").is_file():
        return
    if folder.exists():
        shutil.rmtree(folder)  # half made
    folder.parent.mkdir(parents=True, exist_ok=True)
    words = (sys.executable, "-m", "simulator", "create", str(folder))
    shell.run((*words, f"--machine={profile}", f"--seed={worker}"), cwd=where.checkout)


def runtime_key(checkout: Path) -> str:
    """Changes with the simulator, the interpreter and what both need."""
    simulator = checkout / "simulator"
    paths = sorted(
        path for path in simulator.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return versions.cache_key(
        [
            sys.version.encode(),
            (checkout / build.LOCK).read_bytes(),
            Path(__file__).read_bytes(),
            *(part for path in paths for part in (str(path).encode(), path.read_bytes())),
        ]
    )


def ensure_runtime(checkout: Path, cache: layout.Cache) -> str:
    """Make what machines' services run in, unless the cache has it; its key."""
    key = runtime_key(checkout)
    place = cache.simulators / f"simulator-{key}"
    toolchain.keep(place, functools.partial(_fill, checkout))
    return key


def _fill(checkout: Path, root: Path) -> None:
    python.stage(root)
    needed = root / "requirements.txt"
    needed.write_text(locked((checkout / build.LOCK).read_text(), closure(_NEEDED)))
    install = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes")
    packages = root / python.PACKAGES
    shell.run((*install, f"--target={packages}", f"--requirement={needed}"))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(checkout / "simulator", root / "src" / "simulator", ignore=ignored)
    python.compile_all(root)
    for entry in list(python.entries(root)):
        place = root / entry.name
        if isinstance(entry.content, Path) and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(entry.content, place)
    for name in _EMPTY:
        (root / name).mkdir(exist_ok=True)


def closure(names: Iterable[str]) -> frozenset[str]:
    """These packages and all that they require, as this interpreter has them installed."""
    needed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        required = importlib.metadata.requires(name) or ()
        matches = [_NAME.match(text) for text in required if "extra ==" not in text]
        waiting += [match.group().lower().replace("_", "-") for match in matches if match]
    return frozenset(needed)


def locked(lock: str, names: Iterable[str]) -> str:
    """The entries of a file of hashed requirements that are about these packages."""
    entries = re.split(r"\n(?=[a-z])", lock)
    chosen = [entry for entry in entries if entry.partition("==")[0] in frozenset(names)]
    return "\n".join(chosen) + "\n"


def installed_key(daemon: docker.Docker, node: str) -> str:
    """The runtime that a running node's service was given; empty if it has none or is not well."""
    try:
        key = daemon.inside(node, "cat", str(_KEY)).strip()
        daemon.inside(node, "systemctl", "is-active", "--quiet", UNIT)
    except errors.CommandFailedError:
        return ""
    return key


def install(daemon: docker.Docker, node: str, key: str) -> None:
    """Give a running worker the service of its machine, and start it.

    A service that runs already is started anew, with the new runtime.
    """
    for name, text in units(key).items():
        _write(daemon, node, _UNITS / name, text)
    daemon.inside(node, "systemctl", "daemon-reload")
    daemon.inside(node, "systemctl", "enable", "--quiet", _BOOT, UNIT)
    daemon.inside(node, "systemctl", "restart", UNIT)
    _write(daemon, node, _KEY, f"{key}\n")


def units(key: str) -> dict[str, str]:
    """The services of a worker, as systemd reads them: of its machine's boot, and of its GPUs."""
    shared = [
        f"RootDirectory={layout.RUNTIME}/simulator-{key}",
        f"BindPaths={layout.MACHINE}:/machine",
        "MountAPIVFS=yes",
        *(f"Environment={variable}" for variable in _VARIABLES),
    ]
    program = "/usr/local/bin/python -m simulator"
    boot = [
        "[Unit]",
        "Description=Power on the simulated GPUs of this node",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        *shared,
        f"ExecStart={program} fault reboot /machine",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    serve = [
        "[Unit]",
        "Description=Simulated GPUs of this node",
        f"Wants={_BOOT}",
        f"After={_BOOT}",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        *shared,
        f"ExecStart={program} run /machine",
        "Restart=always",
        "RestartSec=1",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return {_BOOT: "\n".join(boot) + "\n", UNIT: "\n".join(serve) + "\n"}


def _write(daemon: docker.Docker, node: str, path: Path, text: str) -> None:
    daemon.inside(node, "sh", "-c", f"cat > {path}", standard_input=text)
