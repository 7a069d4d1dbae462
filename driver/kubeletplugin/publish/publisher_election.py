"""Elects the publishing plugin: a rolling update runs two on a node, and the newest publishes (D9).

Each has a file of its own, locked as long as its process lives; file names are in the order in
which the plugins first asked to publish:

    <directory>/<20 digits>-<instance>

The digits are nanoseconds since 1970, or one more than the last file's if the clock was set back. A
file that is not locked was left by a dead plugin, and is removed.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import structlog

from driver import clock, errors
from driver.runtime.files import atomic, flock

_log = structlog.get_logger(__name__)
_NAME = re.compile(r"(\d{20})-.+")


class PublisherElection:
    """Used by one thread, except `leave`. `instance` is part of the file's name."""

    def __init__(self, directory: Path, instance: str, time: clock.Clock) -> None:
        self._directory = directory
        self._instance = instance
        self._clock = time
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._elected: bool | None = None

    def is_elected(self) -> bool:
        """Return whether no newer plugin is alive; the first call joins the election.

        Raises NodeFault. Of two plugins that check a dead one's file at the same moment, one may
        take it for alive, once.
        """
        try:
            own_path = self._hold_file()
            alive = [
                path for path in self._election_files() if path != own_path and _is_alive(path)
            ]
        except OSError as e:
            raise errors.NodeFault("look for later plugins in", str(self._directory), str(e)) from e
        later = sorted(path.name for path in alive if path.name > own_path.name)
        if later and self._elected is not False:
            _log.info("a newer plugin publishes", later=later)
        elif not later and self._elected is False:
            _log.info("publishing again, the newer plugin is gone")
        self._elected = not later
        return self._elected

    def leave(self) -> None:
        """Leave the election; the next call joins anew, as the newest."""
        if self._file is None or self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._file.close()
        self._file = self._path = None

    def _hold_file(self) -> Path:
        """Return our locked file; restored under its old name if it was removed."""
        if self._path is not None and self._path.exists():
            return self._path
        atomic.make_folder(self._directory)
        path = self._path or self._directory / self._next_name()
        hidden = path.with_name(f".{path.name}")
        file = hidden.open("wb")
        # It gets its name once it is locked: until then it would seem to be left by a dead one.
        if not flock.try_lock(file.fileno()):
            file.close()
            raise BlockingIOError(f"{hidden} is locked by another plugin of the same name")
        hidden.rename(path)
        if self._file is not None:
            self._file.close()
        self._path, self._file = path, file
        return path

    def _next_name(self) -> str:
        numbers = (int(path.name.partition("-")[0]) for path in self._election_files())
        now = int(self._clock.now().timestamp() * 1e9)
        return f"{max(now, *(number + 1 for number in numbers), 0):020}-{self._instance}"

    def _election_files(self) -> Iterator[Path]:
        paths = self._directory.iterdir() if self._directory.is_dir() else ()
        return (path for path in paths if _NAME.fullmatch(path.name))


def _is_alive(path: Path) -> bool:
    """Return whether a process has it locked; an unlocked file is removed. Raises OSError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        if not flock.try_lock(handle):
            return True
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(handle)
