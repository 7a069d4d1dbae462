"""Writes status files, each only when its content changes."""

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
        """Return the last supervisor's status in this boot; None if none can be read."""
        try:
            status = mps_files.Status.parse(self._path.read_bytes(), str(self._path))
        except FileNotFoundError:
            return None
        except (OSError, errors.BadInput) as e:
            _log.warning("an old status cannot be read", problem=str(e))
            return None
        return status if status.boot_id == self._fixed["boot_id"] else None

    def write(self, state: mps_files.State, problem: str, more: Mapping[str, Any]) -> None:
        """Write the daemon's status; `since` stays while the state does."""
        previous = self._written
        since = clock.rfc3339_micro(self._clock.now())
        if previous is not None and previous.state is state:
            since = previous.since
        status = mps_files.Status(
            state=state, problem=problem[:_MOST_PROBLEM], since=since, **self._fixed, **more
        )
        if status == previous:
            return
        # Not synced: it is of this boot, and worth nothing in the next.
        atomic.replace(self._path, status.render(), _MODE, failpoints.NO_OBSERVER, synced=False)
        self._written = status
        if previous is None or (previous.state, previous.problem) != (state, problem):
            _log.info("daemon state", key=status.key, state=state.value, problem=problem)

    def remove(self) -> None:
        """Remove the file of a daemon that is gone."""
        atomic.remove(self._path, failpoints.NO_OBSERVER, synced=False)
        self._written = None
