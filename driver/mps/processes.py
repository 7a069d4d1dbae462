"""Processes in /proc: identification of clients and daemons."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from driver import errors
from driver.devices import mps_files

PIPE = "CUDA_MPS_PIPE_DIRECTORY"
_USUAL_PIPE = "/tmp/nvidia-mps"  # noqa: S108 - the program's own
"""The pipe directory without the variable (MPS documentation, "Environment Variables")."""
_PROC = "/proc"
_GONE = {"Z", "X", "x"}
_STATE, _PARENT, _STARTED = 0, 1, 19
"""Fields of proc_pid_stat(5), from the third on."""
_EFFECTIVE_USER = re.compile(r"^Uid:\s+\d+\s+(\d+)", re.MULTILINE)


def identify(pid: int) -> mps_files.Process | None:
    """Return the process of a pid; None if none is alive."""
    fields = _stat_fields(pid)
    if fields is None or fields[_STATE] in _GONE:
        return None
    return mps_files.Process(pid=pid, started=int(fields[_STARTED]))


def filter_alive(candidates: Iterable[mps_files.Process]) -> tuple[mps_files.Process, ...]:
    """Return the processes that are still alive."""
    return tuple(process for process in candidates if identify(process.pid) == process)


def read_environment(pid: int) -> dict[str, str]:
    """Return a process's initial environment; empty if it is gone. Raises NodeFault."""
    pairs = (variable.partition("=") for variable in _read_words(pid, "environ"))
    return {name: value for name, _, value in pairs}


def read_arguments(pid: int) -> list[str]:
    """Return the command line of a process; empty if it is gone. Raises NodeFault."""
    return _read_words(pid, "cmdline")


def pids_with_pipe(program: str, pipe: Path) -> tuple[int, ...]:
    """Return pids of processes running `program` on a pipe directory, parents first.

    The path alone proves nothing: a tenant may set it, and nodes in containers use the same. The
    directory it leads to from the process's root has to be this one. Raises NodeFault.
    """
    pids = [pid for pid in _pids() if _runs_program(pid, program) and _uses_pipe(pid, pipe)]
    return tuple(sorted(pids, key=lambda pid: _parent_pid(pid) in pids))


def pids_on_pipe(program: str, pipe: Path) -> tuple[int, ...]:
    """Return pids of processes running `program` on a pipe directory, by any path.

    The directory has a file system of its own, which a container mounts elsewhere. Raises
    NodeFault.
    """
    return tuple(pid for pid in _pids() if _runs_program(pid, program) and _shares_pipe(pid, pipe))


def _shares_pipe(pid: int, pipe: Path) -> bool:
    directory = read_environment(pid).get(PIPE, _USUAL_PIPE)
    try:
        return os.stat(f"{_PROC}/{pid}/root{directory}").st_dev == pipe.stat().st_dev  # noqa: PTH116
    except OSError:
        return False


def effective_user(pid: int) -> str:
    """Return the user id a process runs as; `?` if the process is gone. Raises NodeFault."""
    status = _read(pid, "status").decode(errors="replace")
    match = _EFFECTIVE_USER.search(
        status
    )  # the folder's owner is root if the process is not dumpable
    return match[1] if match else "?"


def _runs_program(pid: int, program: str) -> bool:
    """Check the command line's first two words: a shebang's interpreter comes first."""
    return any(os.path.basename(argument) == program for argument in read_arguments(pid)[:2])  # noqa: PTH119


def _uses_pipe(pid: int, pipe: Path) -> bool:
    if read_environment(pid).get(PIPE) != str(pipe) or identify(pid) is None:
        return False
    try:
        return os.path.samefile(f"{_PROC}/{pid}/root{pipe}", pipe)  # noqa: PTH121
    except OSError:
        return False


def _pids() -> Iterator[int]:
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 - as below
    except OSError as e:
        raise errors.NodeFault("list", _PROC, str(e)) from e
    return (int(name) for name in names if name.isdigit())


def _read_words(pid: int, file: str) -> list[str]:
    text = os.fsdecode(_read(pid, file))
    return text.rstrip("\0").split("\0") if text else []


def _stat_fields(pid: int) -> list[str] | None:
    # The name in brackets may hold anything, brackets too.
    return os.fsdecode(_read(pid, "stat")).rpartition(")")[2].split() or None


def _read(pid: int, file: str) -> bytes:
    """Return an empty value for a process that is gone, or not ours to read and so none of ours."""
    path = f"{_PROC}/{pid}/{file}"
    try:
        with open(path, "rb") as opened:  # noqa: PTH123 - of every process: pathlib keeps each name
            return opened.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
    except OSError as e:
        raise errors.NodeFault("read", path, str(e)) from e


def _parent_pid(pid: int) -> int:
    fields = _stat_fields(pid)
    return int(fields[_PARENT]) if fields else 0
