"""Paths under a root that is not ours: the NVIDIA driver's, wherever it was installed.

Links are followed inside the root only: an absolute link in it means a path of it, never one of
this process's own file system.
"""

import os
from collections import deque
from pathlib import Path

from driver import errors

LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib",
    "usr/lib/nvidia/tesla",
    "opt/nvidia/current/usr/lib64",
    "opt/nvidia/current/lib64",
    "glibc/usr/lib64",
    "glibc/usr/lib",
    "lib",
)
"""As distributions have them; then Bottlerocket's, Flatcar's, and Talos' below /usr/local."""
PROGRAM_FOLDERS = (
    "usr/local/sbin",
    "usr/local/bin",
    "usr/sbin",
    "usr/bin",
    "sbin",
    "bin",
    "usr/libexec/nvidia/tesla/bin",
    "opt/nvidia/current/usr/bin",
    "opt/nvidia/current/bin",
    "glibc/usr/bin",
)
"""Likewise of programs, in the order of a root's PATH (bin is Container-Optimized OS' too)."""
_MAX_LINKS = 40

Parts = tuple[str, ...]
"""Of a path under the root."""


class Root:
    """The file system under `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._prefix = str(self.path).rstrip("/")

    def resolve(self, relative: str, start: Parts = ()) -> Path:
        """Follow the links of a path inside the root; its last parts need not exist.

        `start` is the folder it is relative to, which is followed already. Raises NodeFault.
        """
        return self.path.joinpath(*self._follow(relative, start))

    def library_folders(self) -> tuple[Parts, ...]:
        """The folders of libraries that are there, followed once and each named once."""
        found = dict.fromkeys(self._follow(folder) for folder in LIBRARY_FOLDERS)
        return tuple(folder for folder in found if self.path.joinpath(*folder).is_dir())

    def find_program(self, name: str) -> Parts | None:
        """The real folder that has a program; None where none has. Raises NodeFault."""
        for place in PROGRAM_FOLDERS:
            folder = self._follow(place)
            if self.resolve(name, folder).is_file():
                return folder
        return None

    def _follow(self, relative: str, start: Parts = ()) -> Parts:
        """The parts of the real path, under the root; `start` is real already."""
        left = deque(relative.split("/"))
        here = list(start)
        links = 0
        while left:
            part = left.popleft()
            if part in {"", "."}:
                continue
            if part == "..":
                here = here[:-1]
                continue
            target = _read_link("/".join((self._prefix, *here, part)))
            if target is None:
                here.append(part)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise errors.NodeFault("resolve", str(self.path / relative), "too many links")
            here = [] if target.startswith("/") else here
            left.extendleft(reversed(target.split("/")))
        return tuple(here)


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - asked for every part of every path: pathlib is slow
    except OSError:
        return None
