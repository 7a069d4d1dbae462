"""Nodes with NVIDIA's real programs, laid out as operating systems have them; no GPU."""

from pathlib import Path
from typing import NamedTuple

import pytest

from hack.cluster import errors
from hack.nvidia import packages

SYSTEMS = tuple(packages.systems())
FOREIGN = "debian-13"
"""A system whose libc is not that of the image, which Debian 12 is under."""
_PLACES = {
    "host": ("", "usr/bin", "usr/lib/x86_64-linux-gnu"),
    "driver container": ("run/nvidia/driver", "usr/bin", "usr/lib/x86_64-linux-gnu"),
    "Container-Optimized OS": ("home/kubernetes/bin/nvidia", "bin", "lib64"),
    "Talos": ("usr/local", "bin", "glibc/usr/lib"),
}
"""Below the host's root: the driver's root, and in it the programs and the libraries."""
LAYOUTS = tuple(_PLACES)


class Node(NamedTuple):
    """The host's root, the driver's, and the driver's version."""

    host: Path
    driver: Path
    version: str


def lay_node(layout: str, system: str, host: Path) -> Node:
    """Lay out a node whose driver is that of `system`; skips where that was not fetched.

    A driver container has the system's own libc, and its host another one's.
    """
    location, programs, libraries = _PLACES[layout]
    driver = host / location
    try:
        packages.lay_system(system, driver if layout == "driver container" else host)
        packages.lay_driver(system, driver, programs, libraries)
        if layout == "driver container":
            other = next(name for name in SYSTEMS if name != system)
            packages.lay_system(other, host)
    except errors.ClusterError as e:
        pytest.skip(str(e))
    random = host / "proc/sys/kernel/random"
    random.mkdir(parents=True)
    (random / "boot_id").write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
    return Node(host, driver, packages.systems()[system].driver)


def lay_foreign_libc(root: Path) -> None:
    """Give a root the loader and the libc of FOREIGN; skips where that was not fetched."""
    try:
        packages.lay_system(FOREIGN, root)
    except errors.ClusterError as e:
        pytest.skip(str(e))
