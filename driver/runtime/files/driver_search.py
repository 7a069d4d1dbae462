"""Where on a host the NVIDIA driver's files are: at a given path, or in one of the usual places.

`auto` takes the first place that holds NVML's library. It is looked for as long as it is in none,
and again when the place that had it has it no more: driver containers come late, and go.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, TypeAlias

import structlog

from driver import errors
from driver.runtime.files import root_paths

_log = structlog.get_logger(__name__)
AUTO: Final = "auto"
NVML_LIBRARY: Final = "libnvidia-ml.so.1"
PLACES: Final = (
    "/",
    "/run/nvidia/driver",
    "/home/kubernetes/bin/nvidia",
    "/usr/local",
)
"""Installed on the host; by a driver container (GPU operator); on Container-Optimized OS; on Talos.
In this order: an operator that finds a driver on the host leaves it the GPUs."""

Setting: TypeAlias = Literal["auto"] | Path
"""`--driver-root`."""


def candidates(setting: Setting, host: Path) -> tuple[Path, ...]:
    """Where to look, best first, as this process sees it; `host` is `--host-root`."""
    if isinstance(setting, Path):
        return (setting,)
    return tuple(host / place.lstrip("/") for place in PLACES)


class Search:
    """The roots that may have the driver; with one there is nothing to look for. Thread safe."""

    def __init__(self, places: Iterable[Path], host: Path = Path("/")) -> None:
        self._places = tuple(root_paths.Root(place) for place in places)
        self._host = root_paths.Root(host).path
        self._chosen = self._places[0]
        self._known = len(self._places) == 1

    @property
    def root(self) -> root_paths.Root:
        """The one chosen last; the first place while none has the driver."""
        return self._chosen

    @property
    def host(self) -> Path:
        """`--host-root`: the host's file system, as this process sees it."""
        return self._host

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one place."""
        return len(self._places) == 1

    def locate(self) -> root_paths.Root:
        """The root to use now: the present one while it has the driver, else the first that has."""
        if self.is_fixed or (self._known and missing_reason(self._chosen) is None):
            return self._chosen
        found = next((one for one in self._places if missing_reason(one) is None), None)
        if found is not None:
            _log.info("driver root found", path=str(found.path))
            self._chosen = found
        elif self._known:
            _log.warning("driver root lost", path=str(self._chosen.path))
        self._known = found is not None
        return self._chosen

    def describe(self) -> str:
        """What each place lacks, by its path on the host."""
        told = (
            f"{self._on_host(one)} {missing_reason(one) or 'has it now'}" for one in self._places
        )
        below = "" if self._host == Path("/") else f" (seen below {self._host})"
        return f"looked in {len(self._places)} places{below}: {'; '.join(told)}"

    def _on_host(self, place: root_paths.Root) -> str:
        if not place.path.is_relative_to(self._host):
            return str(place.path)
        return f"/{place.path.relative_to(self._host)}".replace("/.", "/")


def build_search(setting: Setting, host: Path) -> Search:
    """The search that `--driver-root` and `--host-root` ask for."""
    return Search(candidates(setting, host), host)


def missing_reason(root: root_paths.Root) -> str | None:
    """Why the driver is not there, as the tail of a sentence; None when it is."""
    if not root.path.is_dir():
        return "is not there"
    try:
        folders = root.library_folders()
    except errors.NodeFault as e:
        return f"cannot be read ({e})"
    if not folders:
        return f"has no folder of libraries ({', '.join(root_paths.LIBRARY_FOLDERS)})"
    dangling = ""
    for folder in folders:
        try:
            path = root.resolve(NVML_LIBRARY, folder)
        except errors.NodeFault as e:
            return f"cannot be read ({e})"
        if path.is_file():
            return None
        if path != root.path.joinpath(*folder, NVML_LIBRARY):
            dangling = f", but a link to {path.name}, which is not there"
    return f"has no {NVML_LIBRARY} in {', '.join('/'.join(one) for one in folders)}{dangling}"
