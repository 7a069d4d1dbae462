"""Hosts on which the driver lies in a folder of its own, without a loader: other ways to lay out.

The machine's driver root then is links into its host root, which is a whole system: with a loader,
a libc, /dev and /run. A driver is looked for below the host root, as on such a host.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from simulator import layout


class Place(NamedTuple):
    """Where the driver is below the host root, and in it its programs and libraries."""

    folder: str
    programs: str
    libraries: str


PLACES: Final = {
    "gke": Place("home/kubernetes/bin/nvidia", "bin", "lib64"),
    "talos": Place("usr/local", "bin", "glibc/usr/lib"),
}
"""Container-Optimized OS of GKE, and Talos with its system extensions."""
_SYSTEM: Final = ("lib", "lib64", "dev", "run")


def lay(base: Path, name: str) -> None:
    """Prepare a machine's directory, before `builder.build`, for one of PLACES."""
    at, place = layout.Layout(base), PLACES[name]
    driver = at.host_root / place.folder
    links = {
        "usr/bin": driver / place.programs,
        layout.LIBRARIES: driver / place.libraries,
        **{folder: at.host_root / folder for folder in _SYSTEM},
    }
    for path, target in links.items():
        link = at.driver_root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(target, link.parent))
