"""Writes status files, each only when it says something new."""

from collections.abc import Mapping
from typing import Any

import structlog

from driver import clock, errors
from driver.devices import mps_files
from driver.runtime.files import atomic, failpoints

_log = structlog.get_logger(__name__)
_MODE = 0o644
_MOST_PROBLEM = 4096


class StatusFile:
    """The status file of one key; one thread writes it. Raises NodeFault."""

    def __init__(self, layout: mps_files.Layout, key: str, boot_id: str, time: clock.Clock) -> None:
        self._path = layout.status(key)
        self._fixed: dict[str, Any] = {
            "key": key,
            "boot_id": boot_id,
            "pipe_dir": str(layout.pipe(key)),
            "log_dir": str(layout.log(key)),
        }
        self._clock = time
        self._written: mps_files.Status | None = None

    def read_previous(self) -> mps_files.Status | None:
        """What the last supervisor said in this boot; None when nothing that can be read."""
        try:
            said = mps_files.Status.parse(self._path.read_bytes(), str(self._path))
        except FileNotFoundError:
            return None
        except (OSError, errors.BadInput) as e:
            _log.warning("an old status cannot be read", problem=str(e))
            return None
        return said if said.boot_id == self._fixed["boot_id"] else None

    def write(self, state: mps_files.State, problem: str, more: Mapping[str, Any]) -> None:
        """Say how the daemon is; `since` stays while the state does."""
        before = self._written
        since = clock.rfc3339_micro(self._clock.now())
        if before is not None and before.state is state:
            since = before.since
        now = mps_files.Status(
            state=state, problem=problem[:_MOST_PROBLEM], since=since, **self._fixed, **more
        )
        if now == before:
            return
        # Not synced: it is of this boot, and worth nothing in the next.
        atomic.replace(self._path, now.render(), _MODE, failpoints.NO_OBSERVER, synced=False)
        self._written = now
        if before is None or (before.state, before.problem) != (state, problem):
            _log.info("daemon state", key=now.key, state=state.value, problem=problem)

    def remove(self) -> None:
        """There is no such daemon any more."""
        atomic.remove(self._path, failpoints.NO_OBSERVER, synced=False)
        self._written = None
