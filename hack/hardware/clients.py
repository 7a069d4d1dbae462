"""CUDA programs that run beside a step: started with what they see, read line by line, ended."""

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from driver import errors
from driver.kubeletplugin.host import driver_root
from driver.runtime.files import driver_programs
from hack.hardware import machine

_PROGRAM = Path(__file__).with_name("cuda_client.py")
_OURS = Path("/")
_APART = ("unshare", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc")


class Client:
    """One CUDA program; `with` ends it.

    `uid` runs it as another user. With `binds`, folders of ours at paths of its own, it has mounts,
    process ids and shared memory segments apart from ours, as in a container.
    """

    def __init__(
        self,
        target: machine.Machine,
        action: str,
        *words: str,
        variables: Mapping[str, str] | None = None,
        uid: int | None = None,
        binds: Mapping[str, Path] | None = None,
    ) -> None:
        library = target.root.library(driver_root.CUDA_LIBRARY)
        if library is None:
            raise errors.NodeFault("find", driver_root.CUDA_LIBRARY, "no CUDA program can run")
        program = [sys.executable, "-I", "-S", "-c", _PROGRAM.read_text(), str(library), action]
        apart = [] if binds is None else [*_APART, *(_as_user(uid) if uid else [])]
        self._process = driver_programs.Program(_OURS, sys.executable, {}).call(
            lambda: subprocess.Popen(
                [*apart, *program, *words],
                env={"PATH": os.defpath, **_libraries(library), **(variables or {})},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                user=None if apart else uid,
                start_new_session=True,
            ),
            binds,
        )
        self._input, self._output = _pipes(self._process)

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._process.pid

    def line(self, within_s: float = 30.0) -> dict[str, Any]:
        """Read the next line; a refusal where it ended, or said nothing in time."""
        stream = self._output
        ready, _, _ = select.select([stream], [], [], within_s)
        if not ready:
            return {"refusal": f"said nothing within {within_s:.0f} s"}
        text = stream.readline()
        if not text:
            return {"refusal": f"ended with exit status {self._process.wait()}"}
        answer: dict[str, Any] = json.loads(text)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def kill(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self, grace_s: float = 5.0) -> None:
        """Close its stdin, wait, and kill it where that is not enough."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()


def _as_user(uid: int) -> list[str]:
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def _libraries(library: Path) -> dict[str, str]:
    """Name the folder of what libcuda loads; not one with a libc, which may not be ours."""
    folder = library.parent
    return {} if (folder / "libc.so.6").exists() else {"LD_LIBRARY_PATH": str(folder)}


def _pipes(process: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    """Return a child's stdin and stdout, which are pipes. Raises NodeFault."""
    if process.stdin is None or process.stdout is None:
        raise errors.NodeFault("open", "pipes", "none were made")
    return process.stdin, process.stdout


def ask(target: machine.Machine, action: str, *words: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - as Client
    """Run a program to its end; the last line that it printed."""
    with Client(target, action, *words, **options) as client:
        return last(client)


def last(client: Client) -> dict[str, Any]:
    """Read a program's lines to the one that says how it went."""
    answer = client.line()
    while "refusal" not in answer and set(answer) & {"launching", "spinning"}:
        answer = client.line(60.0)
    return answer
