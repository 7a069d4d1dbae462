"""Paths under a root that is not ours: the NVIDIA driver's, wherever it was installed.

Links are followed inside the root only: an absolute link in it means a path of it, never one of
this process's own file system.
"""

import os
from collections import deque
from collections.abc import Iterable
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
"""Folders of distributions; then Bottlerocket's, Flatcar's, and Talos' below /usr/local."""
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
"""Parts of a path under the root."""


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

    def find_links(self, names: Iterable[str]) -> dict[str, str]:
        """Return the links that are followed on the way to paths, each with its target.

        Raises NodeFault.
        """
        links: dict[str, str] = {}
        for name in names:
            self._follow(name, links=links)
        return links

    def library_folders(self) -> tuple[Parts, ...]:
        """Return the existing library folders, resolved and each once."""
        resolved = dict.fromkeys(self._follow(folder) for folder in LIBRARY_FOLDERS)
        return tuple(folder for folder in resolved if self.path.joinpath(*folder).is_dir())

    def find_program(self, name: str) -> Parts | None:
        """Return the real folder that has a program; None if none has. Raises NodeFault."""
        for candidate in PROGRAM_FOLDERS:
            folder = self._follow(candidate)
            if self.resolve(name, folder).is_file():
                return folder
        return None

    def _follow(
        self, relative: str, start: Parts = (), links: dict[str, str] | None = None
    ) -> Parts:
        """Return the parts of the real path, under the root; `start` is real already.

        Links are added to `links`.
        """
        remaining = deque(relative.split("/"))
        current = list(start)
        followed = 0
        while remaining:
            part = remaining.popleft()
            if part in {"", "."}:
                continue
            if part == "..":
                current = current[:-1]
                continue
            path = "/".join((self._prefix, *current, part))
            target = read_link(path)
            if target is None:
                current.append(part)
                continue
            followed += 1
            if links is not None:
                links[path] = target
            if followed > _MAX_LINKS:
                raise errors.NodeFault("resolve", str(self.path / relative), "too many links")
            current = [] if target.startswith("/") else current
            remaining.extendleft(reversed(target.split("/")))
        return tuple(current)


def read_link(path: str) -> str | None:
    """Return a link's target; None if it is no link."""
    try:
        return os.readlink(path)  # noqa: PTH115 - called for every part of every path: pathlib is slow
    except OSError:
        return None
