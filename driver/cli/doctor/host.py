"""The shell of `ration doctor --host`: looks below a node's root, and changes nothing."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from driver import clock
from driver.cli.doctor.checks import host
from driver.runtime.files import container_toolkit, driver_search, root_paths

Read = Callable[[Path], host.Numbers | None]
_CDI = ("etc/cdi", "var/run/cdi")
_KUBELET = "var/lib/kubelet/config.yaml"
_CONTAINERD = "etc/containerd/config.toml"


def numbers(path: Path) -> host.Numbers | None:
    """A device file's major and minor; None for what is none."""
    try:
        result = path.lstat()
    except OSError:
        return None
    if not stat.S_ISCHR(result.st_mode):
        return None
    return os.major(result.st_rdev), os.minor(result.st_rdev)


def collect_host(
    root: Path,
    setting: driver_search.Setting,
    name: str,
    read: Read = numbers,
    ask: container_toolkit.RunVersion = container_toolkit.run_version,
) -> host.Host:
    """Read all facts of a node; `setting` is the plugin's --driver-root."""
    # A search's own look would log, into what is printed.
    roots = [root_paths.Root(path) for path in driver_search.candidates(setting, root)]
    driver = next((each.path for each in roots if driver_search.missing_reason(each) is None), None)
    return host.Host(
        name=name,
        driver=None if driver is None else _on_host(driver, root),
        searched=driver_search.build_search(setting, root).describe(),
        devices={**_devices((driver or root) / "dev", read), **_devices(root / "dev", read)},
        links=frozenset(_names(root / "dev" / "char")),
        unified=(root / "sys/fs/cgroup/cgroup.controllers").exists(),
        cdi_folders=tuple(f"/{folder}" for folder in _CDI if (root / folder).is_dir()),
        kubelet=_text(root / _KUBELET),
        containerd=_text(root / _CONTAINERD),
        hooks=_hooks(root, ask),
    )


def _hooks(root: Path, ask: container_toolkit.RunVersion) -> tuple[tuple[str, str, str], ...]:
    hooks = container_toolkit.Toolkit(root, clock.SystemClock(), run_version=ask).list_hooks()
    return tuple(
        (
            hook.path,
            container_toolkit.format_version(hook.version) if hook.version else "",
            hook.problem,
        )
        for hook in hooks
    )


def _on_host(path: Path, root: Path) -> str:
    below = path.relative_to(root.absolute()) if path.is_relative_to(root.absolute()) else path
    return str(Path("/") / below)


def _devices(folder: Path, read: Read) -> dict[str, host.Numbers]:
    result = {name: read(folder / name) for name in _names(folder) if name.startswith("nvidia")}
    return {name: current for name, current in result.items() if current is not None}


def _names(folder: Path) -> list[str]:
    try:
        return sorted(item.name for item in folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
