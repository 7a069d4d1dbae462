"""Facts of the host: kernel, libc, device nodes and their majors, capabilities of MIG."""

import os
import platform
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from driver import errors
from hack.hardware import facts, machine

_PROC, _MINORS = "proc/driver/nvidia", "proc/driver/nvidia-caps/mig-minors"
_CAPABILITY = re.compile(r"DeviceFileMinor: (\d+)")
_GPU_MINORS, _INSTANCE_MINORS, _FIRST_MINOR = 135, 9, 3
"""Capability minors by GPU, GPU instance and compute instance (nv-caps.c of the open modules)."""
_SMI = (
    ("query", ("-q", "-x")),
    ("list", ("-L",)),
    ("mig-profiles", ("mig", "-lgip")),
    ("mig-placements", ("mig", "-lgipp")),
    ("mig-compute-profiles", ("mig", "-lcip")),
    ("mig-instances", ("mig", "-lgi")),
    ("nvlink-status", ("nvlink", "-s")),
    ("nvlink-remote", ("nvlink", "-R")),
    ("topology", ("topo", "-m")),
    ("compute-policy", ("compute-policy", "-l")),
)


def host(target: machine.Machine) -> Iterator[facts.Fact]:
    """Read what the kernel and the file system say."""
    yield facts.Fact("host.kernel", platform.release())
    yield facts.Fact("host.libc", " ".join(platform.libc_ver()))
    yield facts.Fact(
        "host.driver", target.version, "" if target.version else target.search.describe()
    )
    majors = _majors(target.host / "proc/devices")
    yield facts.Fact("host.majors", majors, "" if majors else "none of the driver's is loaded")
    nodes = dict(_nodes(target.root.path / "dev")) | dict(_nodes(target.host / "dev"))
    yield facts.Fact("host.device-nodes", nodes)
    yield facts.Fact(
        "host.nodes-without-char-link", sorted(_unlinked(target.host / "dev/char", nodes))
    )
    yield facts.Fact(
        "host.unified-cgroup", (target.host / "sys/fs/cgroup/cgroup.controllers").exists()
    )
    for path in sorted(_texts(target.host / _PROC)):
        name = str(path.relative_to(target.host / _PROC)).replace("/", "-")
        target.keep(f"proc/{name}", path.read_text(errors="replace"))
    yield from _capabilities(target.host)


def programs(target: machine.Machine) -> Iterator[facts.Fact]:
    """Keep what nvidia-smi prints of everything that it lists; it changes nothing."""
    for name, arguments in _SMI:
        try:
            done = target.run("nvidia-smi", *arguments)
        except errors.NodeFault as fault:
            yield facts.Fact(f"smi.{name}", problem=str(fault))
            continue
        raw = target.keep(f"nvidia-smi-{name}.txt", done.text)
        yield facts.Fact(f"smi.{name}", done.status, raw=raw)


def _majors(path: Path) -> dict[str, int]:
    try:
        lines = path.read_text().partition("Block devices")[0].splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines if "nvidia" in line)
    return {words[1]: int(words[0]) for words in pairs if words[0].isdigit()}


def _nodes(folder: Path) -> Iterator[tuple[str, list[int]]]:
    for path in sorted(folder.rglob("nvidia*")):
        status = path.lstat()
        if stat.S_ISCHR(status.st_mode):
            yield (
                str(path.relative_to(folder)),
                [os.major(status.st_rdev), os.minor(status.st_rdev), status.st_mode & 0o777],
            )


def _unlinked(folder: Path, nodes: dict[str, list[int]]) -> Iterator[str]:
    """List nodes without a link in /dev/char, which runc of some versions wants."""
    for name, (major, minor, _) in nodes.items():
        if not (folder / f"{major}:{minor}").exists():
            yield f"{name} has no {major}:{minor}"


def _texts(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path


def _capabilities(root: Path) -> Iterator[facts.Fact]:
    """Compare minors of MIG's capabilities: as files tell them, as listed, and by the formula."""
    below = root / _PROC / "capabilities"
    files = {
        str(path.relative_to(below)).replace("mig/", "").removesuffix("/access"): int(minor[1])
        for path in _texts(below)
        if "mig" in path.relative_to(below).parts  # not that of IMEX channels
        and (minor := _CAPABILITY.search(path.read_text(errors="replace")))
    }
    listed = _listed(root / _MINORS)
    yield facts.Fact("host.capability-minors", files)
    unlike = {name: minor for name, minor in files.items() if listed.get(name) != minor}
    yield facts.Fact("host.minors-listed-alike", {"compared": len(files), "unlike": unlike})
    pairs = {name: (minor, _minor(name)) for name, minor in listed.items()}
    off = {name: pair for name, pair in pairs.items() if pair[1] not in {None, pair[0]}}
    yield facts.Fact("host.minors-by-formula", {"compared": len(pairs), "unlike": off})


def _listed(path: Path) -> dict[str, int]:
    try:
        pairs = [line.split() for line in path.read_text().splitlines()]
        return {name.removesuffix("/access"): int(minor) for name, minor in pairs}
    except (OSError, ValueError):
        return {}


def _minor(name: str) -> int | None:
    """Return the minor of an instance's capability by nv-caps.c; None for another capability."""
    numbers = [int(number) for number in re.findall(r"(?:gpu|gi|ci)(\d+)", name)]
    if len(numbers) < 2:  # noqa: PLR2004 - a GPU and its instance
        return None
    gpu, instance, *compute = numbers
    base = _FIRST_MINOR + gpu * _GPU_MINORS + instance * _INSTANCE_MINORS
    return base + 1 + compute[0] if compute else base
