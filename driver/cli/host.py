"""The shell of `ration doctor --host`: looks below a node's root, and changes nothing."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from driver.cli.checks import host
from driver.files import driver_search

Read = Callable[[Path], host.Numbers | None]
_CDI = ("etc/cdi", "var/run/cdi")
_KUBELET = "var/lib/kubelet/config.yaml"
_CONTAINERD = "etc/containerd/config.toml"


def numbers(path: Path) -> host.Numbers | None:
    """A device file's major and minor; None for what is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISCHR(found.st_mode):
        return None
    return os.major(found.st_rdev), os.minor(found.st_rdev)


def look(root: Path, setting: driver_search.Setting, name: str, read: Read = numbers) -> host.Host:
    """What a node is like; `setting` is the plugin's --driver-root."""
    search = driver_search.of(setting, root)
    driver = search.look()
    has_it = driver_search.lacking(driver) is None
    below = driver.path.relative_to(root) if driver.path.is_relative_to(root) else driver.path
    return host.Host(
        name=name,
        driver=f"/{below}".replace("/.", "/").replace("//", "/") if has_it else None,
        looked=search.words(),
        devices=_devices(root / "dev", read),
        links=frozenset(_names(root / "dev" / "char")),
        unified=(root / "sys/fs/cgroup/cgroup.controllers").exists(),
        cdi_folders=tuple(f"/{one}" for one in _CDI if (root / one).is_dir()),
        kubelet=_text(root / _KUBELET),
        containerd=_text(root / _CONTAINERD),
    )


def _devices(folder: Path, read: Read) -> dict[str, host.Numbers]:
    found = {name: read(folder / name) for name in _names(folder) if name.startswith("nvidia")}
    return {name: known for name, known in found.items() if known is not None}


def _names(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
