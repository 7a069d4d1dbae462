"""The machine that facts are read off: its driver's files and programs, and where output goes."""

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from driver import errors
from driver.files import driver_search, rooted
from driver.kubeletplugin import driver_root
from driver.kubeletplugin.nvml import library

_INSIDE = """
import os, sys
root, uid, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
os.chroot(root)
os.chdir("/")
if uid:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
os.execv(words[0], words)
"""
_SIMULATOR = b"ration-simulated-nvml"
_KILLED = 124


@dataclass(frozen=True, slots=True)
class Done:
    """A program that ended: its exit status (124: killed at its limit) and what it printed."""

    status: int
    output: str
    errors: str = ""

    @property
    def text(self) -> str:
        """Both streams and the exit status, as they are kept."""
        return f"{self.output}{self.errors}\nexit status {self.status}\n"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine by its driver root (--driver-root) and its host root; `out` has the output."""

    out: Path
    setting: driver_search.Setting = driver_search.AUTO
    host: Path = Path("/")
    search: driver_search.Search = field(init=False)

    def __post_init__(self) -> None:
        search = driver_search.of(self.setting, self.host)
        search.look()
        object.__setattr__(self, "search", search)

    @property
    def root(self) -> driver_root.DriverRoot:
        """The driver's root."""
        return driver_root.DriverRoot(self.search, host=self.host)

    @property
    def version(self) -> str:
        """The driver's version, off the real name of its library; "" without a driver."""
        real = self.root.library(driver_root.NVML_LIBRARY)
        return "" if real is None else real.name.partition(".so.")[2]

    @property
    def is_simulated(self) -> bool:
        """Whether the library is this project's own, and no fact of it one of hardware."""
        real = self.root.library(driver_root.NVML_LIBRARY)
        return real is not None and _SIMULATOR in real.read_bytes()

    def nvml(self) -> library.NvmlLibrary:
        """NVML as the kubelet plugin reads it."""
        return library.NvmlLibrary(self.search, self.host)

    def program(self, name: str) -> str | None:
        """The path of a program of the driver inside its root; None where it has none."""
        folder = self.search.root.program(name)
        return None if folder is None else "/".join(("", *folder, name))

    def run(self, name: str, *arguments: str, limit_s: float = 30.0, stdin: str = "") -> Done:
        """Run a program of the driver in the driver's own file system. Raises NodeFault."""
        path = self.program(name)
        if path is None:
            raise errors.NodeFault("find", name, f"not in {', '.join(rooted.PROGRAM_FOLDERS)}")
        return run(self.words(path, *arguments), limit_s=limit_s, stdin=stdin)

    def words(self, path: str, *arguments: str, uid: int = 0) -> list[str]:
        """Return the command that runs a program of the driver's root in that root, as a user."""
        inside = [sys.executable, "-I", "-S", "-c", _INSIDE, str(self.root.path), str(uid)]
        return [*inside, path, *arguments]

    def keep(self, name: str, text: str) -> str:
        """Keep raw output; its path below the output folder."""
        path = self.out / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path.relative_to(self.out))


def run(
    words: list[str], *, limit_s: float, stdin: str = "", variables: dict[str, str] | None = None
) -> Done:
    """Run a command with a limit of time. Raises NodeFault where it cannot be started."""
    environment = {"PATH": os.defpath, **(variables or {})}
    try:
        with contextlib.closing(_Child(words, environment)) as child:
            return child.finish(stdin, limit_s)
    except OSError as e:
        raise errors.NodeFault("run", words[0], str(e)) from e


class _Child:
    """A process in a session of its own, all of which ends at its limit."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def finish(self, stdin: str, limit_s: float) -> Done:
        try:
            output, problems = self._process.communicate(stdin, timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.close()
            output, problems = self._process.communicate()
            return Done(_KILLED, output, f"{problems}\nkilled after {limit_s:.0f} s")
        return Done(self._process.returncode, output, problems)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, 9)
