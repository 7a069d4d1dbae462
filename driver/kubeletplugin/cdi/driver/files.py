"""Driver files for every container with a GPU, cached while nothing changes.

With a usable `nvidia-cdi-hook` of the container toolkit on the host, each library is mounted once
and the hook creates its links and the loader's cache. Without it, nothing runs ldconfig in the
container: each library is mounted in every folder a loader searches, under each of its names.
`/tmp/nvidia-mps` is never mounted: a claim's own daemon uses it (NV-2).
"""

import datetime as dt
import itertools
import os
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
"""Loader folders of RHEL, UBI and openSUSE, and LD_LIBRARY_PATH of NVIDIA's images."""
_SETTLED = dt.timedelta(seconds=2)
"""A folder changed more recently than this may change again with the same timestamp."""

_Stamp = tuple[int, int, int] | None
"""A real folder's device, inode, time of its last change in ns; None if it is missing."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Inputs of the cached edits, besides the files below the driver's root."""

    nodes: tuple[device_node.DeviceNode, ...]
    hook: container_toolkit.Hook | None


@dataclass(frozen=True, slots=True)
class _Cached:
    """Edits, and what they were collected from: the same links and folders have the same files.

    A missing folder has the first missing folder on the way to it instead.
    """

    root: Path
    links: dict[str, str]
    stamps: dict[str, _Stamp]
    inputs: _Inputs
    common: template.Common

    def has_files_of(self, root: Path) -> bool:
        """Return whether it is of this driver root, whose files are the same."""
        return (
            self.root == root
            and all(root_paths.read_link(path) == self.links[path] for path in self.links)
            and all(_stamp(path) == self.stamps[path] for path in self.stamps)
        )


class DriverFiles:
    """The driver's files under `root`; `hook` is as in `container_toolkit.Toolkit`."""

    def __init__(
        self,
        root: driver_root.DriverRoot,
        host_root: Path = Path("/"),
        hook: str = container_toolkit.AUTO,
        time: clock.Clock | None = None,
        run_version: container_toolkit.RunVersion = container_toolkit.run_version,
    ) -> None:
        self.root = root
        self._host = root_paths.Root(host_root)
        self._hook = hook
        self._time = time or clock.SystemClock()
        self._toolkit = container_toolkit.Toolkit(host_root, self._time, hook, run_version)
        self._refused: tuple[container_toolkit.Hook, ...] = ()
        self._cached: _Cached | None = None

    def read(self) -> template.Common:
        """Return all edits; the same object while nothing changes.

        Collected anew if the driver's version, a control node, the hook's program, or a searched
        folder has changed. Thread safe. Raises DriverNotReady, NodeFault.
        """
        cached = self._cached
        if cached is not None and not cached.has_files_of(self.root.path):
            cached = None
        if cached is None:
            self.root.search.locate()
        inputs = _Inputs(
            tuple(control_nodes.read_nodes(self.root, self._host.path)), self._usable_hook()
        )
        return cached.common if cached and cached.inputs == inputs else self._collect(inputs)

    def _collect(self, inputs: _Inputs) -> template.Common:
        since = self._time.now()
        libraries = cdi_driver_libraries.find_libraries(self.root)
        places = paths.DriverPaths(self.root, self._host, libraries.version)
        make_mounts = _mounts_with_hook if inputs.hook else _mounts_without_hook
        mounts = (*make_mounts(libraries), *places.mounts())
        common = template.Common(inputs.nodes, mounts)
        if inputs.hook:
            common = replace(
                common,
                hooks=_hook_commands(inputs.hook, libraries),
                environment=(f"NVIDIA_CTK_LIBCUDA_DIR={libraries.cuda}",),
            )
        links, folders = self.root.trace(driver_root.CUDA_LIBRARY, driver_root.NVML_LIBRARY)
        stamps = _stamps((*folders, *libraries.folders, *places.search_folders()))
        cached = _Cached(self.root.path, links, stamps, inputs, common)
        self._cached = cached if _are_older(stamps, since - _SETTLED) else None
        return common

    def _usable_hook(self) -> container_toolkit.Hook | None:
        """Return the host's usable hook program; None without any, or if none is wanted.

        Raises DriverNotReady if the program that --cdi-hook names is missing or refused.
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
    for library in libraries.all:
        yield paths.file_mount(library.real, f"{library.folder}/{library.name}")


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
    for library in libraries.all:
        for link, target in library.links:
            yield target, f"{library.folder}/{link}"


def _loader_folders(libraries: cdi_driver_libraries.Libraries) -> Iterator[str]:
    yield from dict.fromkeys(library.folder for library in libraries.all if not library.is_x_module)


def _are_older(stamps: dict[str, _Stamp], moment: dt.datetime) -> bool:
    newest = max((stamp[2] for stamp in stamps.values() if stamp), default=0)
    return newest / 1e9 < moment.timestamp()


def _stamps(folders: Iterable[Path]) -> dict[str, _Stamp]:
    return {path: _stamp(path) for path in map(_present, folders)}


def _present(folder: Path) -> str:
    """Return a folder's path, or the first missing one on the way to it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    return str(missing[-1] if missing else folder)


def _stamp(folder: str) -> _Stamp:
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino, max(status.st_mtime_ns, status.st_ctime_ns)
