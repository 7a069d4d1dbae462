"""NVIDIA's container toolkit on the host: its nvidia-cdi-hook, and what that program's version is.

A hook that the program does not know ends it with exit code 3 before 1.18.0, and with it the
container; so the version is asked for before anything relies on the program. Versions below FLOOR
run as root on what a container's image brings (CVE-2025-23266, CVE-2025-23267).
"""

import re
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from driver import clock, errors
from driver.runtime.files import root_paths

PROGRAMS: Final = ("/usr/bin/nvidia-cdi-hook", "/usr/local/nvidia/toolkit/nvidia-cdi-hook")
AUTO, NONE = "auto", "none"
Version = tuple[int, int, int]
FLOOR: Final[Version] = (1, 17, 8)
RunVersion = Callable[[Path, str], str]
"""Run `<path> --version` in the file system under a root; its output. Raises NodeFault."""

_Stamp = tuple[int, int, int]
"""A file's inode, time of its last change in ns, size in bytes."""

_TIMEOUT_S = 10.0
_AGAIN_S = 60.0
"""Retry interval for a program that did not report its version."""
_VERSION = re.compile(r"version v?(\d+)\.(\d+)\.(\d+)")
_INSIDE = (
    "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); os.execv(sys.argv[2], sys.argv[2:])"
)
_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook program: its path on the host, and why it is not used ("" when it may be)."""

    path: str
    version: Version | None
    problem: str = ""


def run_version(root: Path, path: str) -> str:
    """Run the program, with the host's own loader and libraries. Raises NodeFault.

    It may be linked to a libc that is not ours, or be a script of the GPU operator's.
    """
    command = [path, "--version"]
    if root != Path("/"):
        command = [sys.executable, "-I", "-S", "-c", _INSIDE, str(root), *command]
    try:
        completed = subprocess.run(
            command,
            env=_PATH,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise errors.NodeFault("run", path, str(e)) from e
    if completed.returncode != 0:
        text = " ".join((completed.stdout + completed.stderr).split())[-_SHOWN:]
        raise errors.NodeFault("run", path, f"exit {completed.returncode}: {text}")
    return completed.stdout


class Toolkit:
    """The hook programs of the host under `root`; each is run once for as long as it is the same.

    `setting` is the path of a program, AUTO for PROGRAMS, or NONE.
    """

    def __init__(
        self,
        root: Path,
        time: clock.Clock,
        setting: str = AUTO,
        run_version: RunVersion = run_version,
    ) -> None:
        self._host = root_paths.Root(root)
        self._time = time
        self._setting = setting
        self._run_version = run_version
        self._cache: dict[str, tuple[_Stamp, float, Hook]] = {}

    def list_hooks(self) -> tuple[Hook, ...]:
        """List those that are there, the preferred first. Raises NodeFault for endless links."""
        paths = {AUTO: PROGRAMS, NONE: ()}.get(self._setting, (self._setting,))
        hooks = (self._hook(path) for path in paths)
        return tuple(hook for hook in hooks if hook is not None)

    def _hook(self, path: str) -> Hook | None:
        stamp, now = _stamp(self._host.resolve(path)), self._time.monotonic()
        if stamp is None:
            return None
        if path in self._cache:
            stamp_then, then, hook = self._cache[path]
            if stamp_then == stamp and (hook.version is not None or now - then < _AGAIN_S):
                return hook
        hook = self._query(path)
        self._cache[path] = (stamp, now, hook)
        return hook

    def _query(self, path: str) -> Hook:
        try:
            output = self._run_version(self._host.path, path)
        except errors.NodeFault as fault:
            return Hook(path, None, f"its version is not known: {fault}")
        return parse_version(path, output)


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    regular = stat.S_ISREG(status.st_mode)
    return (status.st_ino, status.st_mtime_ns, status.st_size) if regular else None


def parse_version(path: str, output: str) -> Hook:
    """Read a program's version off what `--version` printed, and judge it. Pure."""
    numbers = _VERSION.search(output)
    if numbers is None:
        text = " ".join(output.split())[:_SHOWN]
        return Hook(path, None, f"its version is not known: it printed {text!r}")
    version = (int(numbers[1]), int(numbers[2]), int(numbers[3]))
    if version >= FLOOR:
        return Hook(path, version)
    problem = (
        f"is version {format_version(version)}; expected {format_version(FLOOR)} or newer: "
        "CVE-2025-23266 and CVE-2025-23267 let an image act as root on the host"
    )
    return Hook(path, version, problem)


def format_version(version: Version) -> str:
    """Write a version as NVIDIA does."""
    return ".".join(map(str, version))
