"""Plugin side of the MPS supervisor's files: desired daemons and their status."""

import threading
from pathlib import Path

from driver import clock, errors
from driver.devices import mps_files
from driver.runtime.files import atomic, failpoints, flock

READY_S = 20.0
"""A daemon is ready in 0.25 s; one that takes longer than this is failing (the kubelet: 45 s)."""
GONE_S = 10.0
ALONE_S = 2.0
"""Wait without a supervisor, as right after a boot: a waiting claim delays no other."""
_POLL_S = 0.02
_MODE = 0o644


class MpsClient:
    """Implements `ports.Daemons` by the supervisor's files."""

    def __init__(self, state_dir: Path, boot_id: str, time: clock.Clock) -> None:
        self._root = state_dir
        self._files = mps_files.Layout(state_dir)
        self._boot_id = boot_id
        self._clock = time
        self._last_pids: dict[str, int] = {}

    @property
    def root(self) -> Path:
        """Return the supervisor's folder."""
        return self._root

    def ensure(self, desired: mps_files.Desired) -> None:
        """Request the daemon, and wait until it serves as desired."""
        self.request(desired)
        status = self._wait_ready(desired.key, mps_files.digest(desired.render()))
        if status.pid is not None:
            self._last_pids[desired.key] = status.pid

    def last_pid(self, key: str) -> int | None:
        """Return the daemon's pid at the last `ensure`; None if it was not awaited here."""
        return self._last_pids.get(key)

    def request(self, desired: mps_files.Desired) -> None:
        """Request the daemon, without waiting for it."""
        data = desired.render()
        path = self._files.desired(desired.key)
        if atomic.read(path) != data:
            atomic.replace(path, data, _MODE, failpoints.NO_OBSERVER)

    def read_desired(self, key: str) -> mps_files.Desired | None:
        """Return a daemon's desired state; None if there is none that can be read."""
        path = self._files.desired(key)
        data = atomic.read(path)
        try:
            return mps_files.Desired.parse(data, path.name) if data is not None else None
        except errors.BadInput:
            return None

    def remove(self, key: str) -> None:
        """Remove the daemon, and wait until it is gone."""
        self._last_pids.pop(key, None)
        atomic.remove(self._files.desired(key), failpoints.NO_OBSERVER)
        started_at = self._clock.monotonic()
        while self._files.status(key).exists():
            if problem := self._timeout_reason(started_at, GONE_S):
                raise errors.NodeFault("end", f"MPS daemon {key}", problem)
            self._clock.wait(threading.Event(), _POLL_S)

    def status(self, key: str) -> mps_files.Status | None:
        """Return the daemon's status, as the supervisor last wrote it."""
        path = self._files.status(key)
        data = atomic.read(path)
        if data is None:
            return None
        try:
            return mps_files.Status.parse(data, path.name)
        except errors.BadInput as e:
            raise errors.NodeFault("read", str(path), str(e)) from e

    def desired_keys(self) -> tuple[str, ...]:
        """Return the keys of the desired daemons."""
        try:
            paths = sorted(self._files.desired_dir.glob(f"*{mps_files.SUFFIX}"))
        except OSError as e:
            raise errors.NodeFault("list", str(self._files.desired_dir), str(e)) from e
        return tuple(path.name.removesuffix(mps_files.SUFFIX) for path in paths)

    def _wait_ready(self, key: str, digest: str) -> mps_files.Status:
        started_at = self._clock.monotonic()
        while True:
            status = self.status(key)
            if status is not None and status.serves(digest, self._boot_id):
                return status
            if problem := self._timeout_reason(started_at, READY_S):
                message = status.problem if status is not None else ""
                raise errors.NodeFault("start", f"MPS daemon {key}", message or problem)
            self._clock.wait(threading.Event(), _POLL_S)

    def _timeout_reason(self, started_at: float, patience_s: float) -> str:
        """Return why the wait that began at `started_at` ends; "" if it continues."""
        waited_s = self._clock.monotonic() - started_at
        if waited_s > ALONE_S and not self._is_supervised():
            return "ration-mps-supervisor does not run on this node, or has another --state-dir"
        return f"not after {patience_s:.0f} s" if waited_s > patience_s else ""

    def _is_supervised(self) -> bool:
        """Return whether a supervisor holds its lock; one taking it just now may seem absent."""
        return flock.is_held(self._files.lock)
