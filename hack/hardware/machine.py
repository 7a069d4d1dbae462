"""The machine that facts are read off: its driver's files and programs, and where output goes."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from driver import errors
from driver.kubeletplugin.host import driver_root
from driver.kubeletplugin.nvml import library
from driver.runtime.files import driver_programs, driver_search

_SIMULATOR = b"ration-simulated-nvml"
_KILLED = 124
_OURS = Path("/")


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
        search = driver_search.build_search(self.setting, self.host)
        search.locate()
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

    def run(self, name: str, *arguments: str, limit_s: float = 30.0) -> Done:
        """Run a program of the driver in the file system it belongs to. Raises NodeFault."""
        return Command(self, name, arguments).run(limit_s)

    def keep(self, name: str, text: str) -> str:
        """Keep raw output; its path below the output folder."""
        path = self.out / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path.relative_to(self.out))


@dataclass(frozen=True, slots=True)
class Command:
    """A program of the driver, which runs as the product runs it: where the driver belongs.

    `folders` are folders of ours that it has at the same paths; `uid` runs it as another user.
    """

    target: Machine
    name: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    uid: int = 0

    def start(self, **pipes: Any) -> "subprocess.Popen[Any]":  # noqa: ANN401 - as Popen takes them
        """Start it in a session of its own. Raises NodeFault."""
        program = driver_programs.find_program(self.target.search, self.name)
        shown = {} if program.root == _OURS else {str(folder): folder for folder in self.folders}
        user: dict[str, Any] = {}
        if self.uid:
            user = {"user": self.uid, "group": self.uid, "extra_groups": []}
        try:
            return program.call(
                lambda: subprocess.Popen(
                    [program.path, *self.arguments],
                    env={**program.environment, **self.variables},
                    cwd="/",
                    start_new_session=True,
                    **user,
                    **pipes,
                ),
                shown,
            )
        except OSError as e:
            raise errors.NodeFault("run", program.path, str(e)) from e

    def run(self, limit_s: float, stdin: str = "") -> Done:
        """Run it with a limit of time. Raises NodeFault."""
        return _finish(lambda: self.start(**_PIPES), stdin, limit_s)


def run(words: list[str], *, limit_s: float) -> Done:
    """Run a program of the host's, with a limit of time. Raises NodeFault."""

    def start() -> "subprocess.Popen[str]":
        environment = {"PATH": os.defpath}
        return subprocess.Popen(words, env=environment, start_new_session=True, **_PIPES)

    try:
        return _finish(start, "", limit_s)
    except OSError as e:
        raise errors.NodeFault("run", words[0], str(e)) from e


_PIPES: Final[dict[str, Any]] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
    "errors": "replace",
}


def _finish(start: "Callable[[], subprocess.Popen[str]]", stdin: str, limit_s: float) -> Done:
    with contextlib.closing(_Child(start())) as child:
        return child.finish(stdin, limit_s)


class _Child:
    """A process in a session of its own, all of which ends at its limit."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

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
