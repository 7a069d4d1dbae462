"""What every container with a GPU gets of the driver, found once and kept while it stands.

With the container toolkit's `nvidia-cdi-hook` on the host, of a version that may be used, each
library is mounted once and the hook makes its links and the loader's cache. Without, nobody runs
ldconfig in the container: each library is mounted in every folder that a loader looks in, under
every name it goes by. `/tmp/nvidia-mps` is never given: a claim's own daemon has it (NV-2).
"""

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from driver import clock
from driver.kubeletplugin.cdi import hooks, template
from driver.kubeletplugin.cdi.driver import libraries as cdi_driver_libraries
from driver.kubeletplugin.cdi.driver import paths
from driver.kubeletplugin.host import control_nodes, device_node, driver_root
from driver.runtime.files import container_toolkit, root_paths

_log = structlog.get_logger(__name__)
_LOADERS = ("/usr/lib64", "/usr/local/nvidia/lib64")
"""Where the loaders of RHEL, UBI and openSUSE look, and LD_LIBRARY_PATH of NVIDIA's images."""
_SETTLED = dt.timedelta(seconds=2)
"""Of a folder that changed this lately, another change might bear the same time."""

_Stamp = tuple[int, int, int] | None
"""Of a folder: device, inode, time of its last change in ns; None where there is none."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What the kept edits are true of."""

    libraries: tuple[Path | None, ...]
    nodes: tuple[device_node.DeviceNode, ...]
    hook: container_toolkit.Hook | None


class DriverFiles:
    """The driver's files under `root`; `hook` is as of `toolkit.Toolkit`."""

    def __init__(
        self,
        root: driver_root.DriverRoot,
        host_root: Path = Path("/"),
        hook: str = container_toolkit.AUTO,
        time: clock.Clock | None = None,
        ask: container_toolkit.RunVersion = container_toolkit.run_version,
    ) -> None:
        self.root = root
        self._host = root_paths.Root(host_root)
        self._hook = hook
        self._time = time or clock.SystemClock()
        self._toolkit = container_toolkit.Toolkit(host_root, self._time, hook, ask)
        self._refused: tuple[container_toolkit.Hook, ...] = ()
        self._cached: tuple[_Inputs, dict[Path, _Stamp], template.Common] | None = None

    def read(self) -> template.Common:
        """All of it; the same object while nothing has changed. Raises DriverNotReady, NodeFault.

        Found anew when the driver's version, a control node, the hook's program, or a folder that
        was looked at has changed. Thread safe.
        """
        seen = _Inputs(
            self.root.libraries(driver_root.CUDA_LIBRARY, driver_root.NVML_LIBRARY),
            tuple(control_nodes.read_nodes(self.root, self._host.path)),
            self._usable_hook(),
        )
        kept = self._cached
        if kept is not None and kept[0] == seen and _stamps(kept[1]) == kept[1]:
            return kept[2]
        return self._collect(seen)

    def _collect(self, seen: _Inputs) -> template.Common:
        since = self._time.now()
        libraries = cdi_driver_libraries.find_libraries(self.root)
        places = paths.DriverPaths(self.root, self._host, libraries.version)
        given = _mounts_with_hook if seen.hook else _mounts_without_hook
        mounts = (*given(libraries), *places.mounts())
        common = template.Common(seen.nodes, mounts)
        if seen.hook:
            common = replace(
                common,
                hooks=_hook_commands(seen.hook, libraries),
                environment=(f"NVIDIA_CTK_LIBCUDA_DIR={libraries.cuda}",),
            )
        stamps = _stamps((*libraries.folders, *places.search_folders()))
        self._cached = (seen, stamps, common) if _are_older(stamps, since - _SETTLED) else None
        return common

    def _usable_hook(self) -> container_toolkit.Hook | None:
        """The host's hook program that may be used; None without any, or where none is wanted.

        Raises DriverNotReady when the program that --cdi-hook names is missing or refused.
        """
        hooks_there = self._toolkit.list_hooks()
        refused = tuple(hook for hook in hooks_there if hook.problem)
        if refused != self._refused:
            self._refused = refused
            for hook in refused:
                _log.warning("nvidia-cdi-hook not used", path=hook.path, problem=hook.problem)
        if self._hook not in {container_toolkit.AUTO, container_toolkit.NONE}:
            self._require_hook(hooks_there)
        return next((hook for hook in hooks_there if not hook.problem), None)

    def _require_hook(self, hooks_there: tuple[container_toolkit.Hook, ...]) -> None:
        if not hooks_there:
            expected = "no such file on the host (yet); --cdi-hook asks for it"
            raise driver_root.DriverNotReady("find", self._hook, expected)
        if problem := hooks_there[0].problem:
            raise driver_root.DriverNotReady("use", self._hook, problem)


def _hook_commands(
    hook: container_toolkit.Hook, libraries: cdi_driver_libraries.Libraries
) -> tuple[template.Hook, ...]:
    version = hook.version or container_toolkit.FLOOR
    folders = _loader_folders(libraries)
    return hooks.build_hooks(hook.path, version, libraries.version, _symlinks(libraries), folders)


def _mounts_with_hook(libraries: cdi_driver_libraries.Libraries) -> Iterator[template.Mount]:
    for one in libraries.all:
        yield paths.file_mount(one.real, f"{one.folder}/{one.name}")


def _mounts_without_hook(libraries: cdi_driver_libraries.Libraries) -> Iterator[template.Mount]:
    loaders = dict.fromkeys((libraries.loader, *_LOADERS))
    for library in libraries.all:
        folders = (
            (library.folder,)
            if library.is_x_module
            else tuple(folder + library.subfolder for folder in loaders)
        )
        names = dict.fromkeys((library.name, *(link for link, _ in library.links)))
        for folder, name in itertools.product(folders, names):
            yield paths.file_mount(library.real, f"{folder}/{name}")


def _symlinks(libraries: cdi_driver_libraries.Libraries) -> Iterator[tuple[str, str]]:
    for one in libraries.all:
        for link, target in one.links:
            yield target, f"{one.folder}/{link}"


def _loader_folders(libraries: cdi_driver_libraries.Libraries) -> Iterator[str]:
    yield from dict.fromkeys(one.folder for one in libraries.all if not one.is_x_module)


def _are_older(stamps: dict[Path, _Stamp], moment: dt.datetime) -> bool:
    newest = max((stamp[2] for stamp in stamps.values() if stamp), default=0)
    return newest / 1e9 < moment.timestamp()


def _stamps(folders: Iterable[Path]) -> dict[Path, _Stamp]:
    return {folder: _stamp(folder) for folder in folders}


def _stamp(folder: Path) -> _Stamp:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, max(found.st_mtime_ns, found.st_ctime_ns)
