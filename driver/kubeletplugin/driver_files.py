"""What every container with a GPU gets of the driver, found once and kept while it stands.

With the container toolkit's `nvidia-cdi-hook` on the host, each library is mounted once and the
hook makes its links and the loader's cache. Without, nobody runs ldconfig in the container: each
library is mounted in the loader's folder under every name it goes by. `/tmp/nvidia-mps` is never
given here: a claim's own daemon has it (node-layer §5.3).
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from driver import clock
from driver.files import rooted
from driver.kubeletplugin import driver_libraries, driver_places, driver_root
from driver.kubeletplugin.cdi import hooks, template

CONTROL_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
ANY_HOOK, NO_HOOK = "auto", "none"
HOOKS = ("/usr/bin/nvidia-cdi-hook", "/usr/local/nvidia/toolkit/nvidia-cdi-hook")
_SETTLED = dt.timedelta(seconds=2)
"""Of a folder that changed this lately, another change might bear the same time."""

_Stamp = tuple[int, int, int] | None
"""Of a folder: device, inode, time of its last change in ns; None where there is none."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the kept edits are true of."""

    libraries: tuple[Path | None, ...]
    nodes: tuple[template.DeviceNode, ...]
    hook: str


class DriverFiles:
    """The driver's files under `root`; `hook` is a path of the host, ANY_HOOK or NO_HOOK."""

    def __init__(
        self,
        root: driver_root.DriverRoot,
        host_root: Path = Path("/"),
        hook: str = ANY_HOOK,
        time: clock.Clock | None = None,
    ) -> None:
        self.root = root
        self._host = rooted.Root(host_root)
        self._hook = hook
        self._time = time or clock.SystemClock()
        self._kept: tuple[_Seen, dict[Path, _Stamp], template.Common] | None = None

    def read(self) -> template.Common:
        """All of it; the same object while nothing has changed. Raises DriverNotReady, NodeFault.

        Found anew when the driver's version, a control node, the hook's program, or a folder that
        was looked at has changed. Thread safe.
        """
        nodes = (self.root.node(name) for name in CONTROL_NODES)
        seen = _Seen(
            self.root.libraries(driver_root.CUDA_LIBRARY, driver_root.NVML_LIBRARY),
            tuple(node for node in nodes if node is not None),
            self._program(),
        )
        kept = self._kept
        if kept is not None and kept[0] == seen and _stamps(kept[1]) == kept[1]:
            return kept[2]
        return self._anew(seen)

    def _anew(self, seen: _Seen) -> template.Common:
        since = self._time.now()
        libraries = driver_libraries.find(self.root)
        places = driver_places.Places(self.root, self._host, libraries.version)
        given = _with_hook if seen.hook else _without_hook
        mounts = (*given(libraries), *places.mounts())
        common = template.Common(seen.nodes, mounts)
        if seen.hook:
            common = replace(
                common,
                hooks=hooks.hooks(
                    seen.hook, libraries.version, _links(libraries), _loader_folders(libraries)
                ),
                environment=(f"NVIDIA_CTK_LIBCUDA_DIR={libraries.cuda}",),
            )
        stamps = _stamps((*libraries.folders, *places.folders()))
        self._kept = (seen, stamps, common) if _are_older(stamps, since - _SETTLED) else None
        return common

    def _program(self) -> str:
        """Where the hook's program is on the host, where runtimes look; empty without one."""
        if self._hook == NO_HOOK:
            return ""
        asked = HOOKS if self._hook == ANY_HOOK else (self._hook,)
        found = next((path for path in asked if self._host.resolve(path).is_file()), "")
        if not found and self._hook != ANY_HOOK:
            expected = "no such file on the host (yet); --cdi-hook asks for it"
            raise driver_root.DriverNotReady("find", self._hook, expected)
        return found


def _with_hook(libraries: driver_libraries.Libraries) -> Iterator[template.Mount]:
    for one in libraries.all:
        yield driver_places.file(one.real, f"{one.folder}/{one.name}")


def _without_hook(libraries: driver_libraries.Libraries) -> Iterator[template.Mount]:
    for one in libraries.all:
        folder = one.folder if one.is_of_x else libraries.loader + one.subfolder
        for name in dict.fromkeys((one.name, *(link for link, _ in one.links))):
            yield driver_places.file(one.real, f"{folder}/{name}")


def _links(libraries: driver_libraries.Libraries) -> Iterator[tuple[str, str]]:
    for one in libraries.all:
        for link, target in one.links:
            yield target, f"{one.folder}/{link}"


def _loader_folders(libraries: driver_libraries.Libraries) -> Iterator[str]:
    yield from dict.fromkeys(one.folder for one in libraries.all if not one.is_of_x)


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
