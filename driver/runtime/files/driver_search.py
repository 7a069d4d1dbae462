"""Finds the NVIDIA driver's files on a host: at a given path, or in one of the usual places.

`auto` takes the first place that holds NVML's library. The search repeats while none has it, and
when the chosen place no longer has it: driver containers come late, and go.
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
    """Return the candidate roots as this process sees them, best first; `host` is `--host-root`."""
    if isinstance(setting, Path):
        return (setting,)
    return tuple(host / path.lstrip("/") for path in PLACES)


class Search:
    """The candidate roots; a single one is not searched for. Thread safe."""

    def __init__(self, paths: Iterable[Path], host: Path = Path("/")) -> None:
        self._places = tuple(root_paths.Root(path) for path in paths)
        self._host = root_paths.Root(host).path
        self._chosen = self._places[0]
        self._has_driver = len(self._places) == 1

    @property
    def root(self) -> root_paths.Root:
        """Return the root chosen last; the first candidate while none has the driver."""
        return self._chosen

    @property
    def host(self) -> Path:
        """Return `--host-root`: the host's file system, as this process sees it."""
        return self._host

    @property
    def is_fixed(self) -> bool:
        """Return whether there is only one candidate."""
        return len(self._places) == 1

    def locate(self) -> root_paths.Root:
        """Return the current root while it has the driver, else the first candidate that has it."""
        if self.is_fixed or (self._has_driver and missing_reason(self._chosen) is None):
            return self._chosen
        root = next(
            (candidate for candidate in self._places if missing_reason(candidate) is None), None
        )
        if root is not None:
            _log.info("driver root found", path=str(root.path))
            self._chosen = root
        elif self._has_driver:
            _log.warning("driver root lost", path=str(self._chosen.path))
        self._has_driver = root is not None
        return self._chosen

    def describe(self) -> str:
        """Return what each candidate lacks, by its path on the host."""
        reasons = (
            f"{self._on_host(candidate)} {missing_reason(candidate) or 'has it now'}"
            for candidate in self._places
        )
        below = "" if self._host == Path("/") else f" (seen below {self._host})"
        return f"looked in {len(self._places)} places{below}: {'; '.join(reasons)}"

    def _on_host(self, root: root_paths.Root) -> str:
        if not root.path.is_relative_to(self._host):
            return str(root.path)
        return f"/{root.path.relative_to(self._host)}".replace("/.", "/")


def build_search(setting: Setting, host: Path) -> Search:
    """Return the search for `--driver-root` and `--host-root`."""
    return Search(candidates(setting, host), host)


def missing_reason(root: root_paths.Root) -> str | None:
    """Return why the driver is not there, as the tail of a sentence; None if it is."""
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
    searched = ", ".join("/".join(parts) for parts in folders)
    return f"has no {NVML_LIBRARY} in {searched}{dangling}"
