"""The plugin's side of the MPS supervisor's files: what is wanted, and whether it is so."""

import threading
from pathlib import Path

from driver import clock, errors
from driver.devices import mps_files
from driver.runtime.files import atomic, failpoints, flock

READY_S = 20.0
"""A daemon is ready in a quarter of a second; what takes longer is failing (the kubelet: 45 s)."""
GONE_S = 10.0
ALONE_S = 2.0
"""Where no supervisor runs, as right after a boot: what waits for one holds up nobody else."""
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
        """The supervisor's folder."""
        return self._root

    def ensure(self, desired: mps_files.Desired) -> None:
        """Have the daemon, and wait until it answers with what is wanted."""
        self.request(desired)
        found = self._wait_ready(desired.key, mps_files.digest(desired.render()))
        if found.pid is not None:
            self._last_pids[desired.key] = found.pid

    def last_pid(self, key: str) -> int | None:
        """The pid of the daemon when it last answered `want`; None: nobody waited for it here."""
        return self._last_pids.get(key)

    def request(self, desired: mps_files.Desired) -> None:
        """Ask for the daemon, without waiting for it."""
        data = desired.render()
        path = self._files.desired(desired.key)
        if atomic.read(path) != data:
            atomic.replace(path, data, _MODE, failpoints.NO_OBSERVER)

    def read_desired(self, key: str) -> mps_files.Desired | None:
        """What is asked of a daemon; None where nothing is, or nothing that can be read."""
        path = self._files.desired(key)
        data = atomic.read(path)
        try:
            return mps_files.Desired.parse(data, path.name) if data is not None else None
        except errors.BadInput:
            return None

    def remove(self, key: str) -> None:
        """Have no daemon, and wait until it is gone."""
        self._last_pids.pop(key, None)
        atomic.remove(self._files.desired(key), failpoints.NO_OBSERVER)
        began = self._clock.monotonic()
        while self._files.status(key).exists():
            if problem := self._timeout_reason(began, GONE_S):
                raise errors.NodeFault("end", f"MPS daemon {key}", problem)
            self._clock.wait(threading.Event(), _POLL_S)

    def status(self, key: str) -> mps_files.Status | None:
        """How the daemon is, as the supervisor said last."""
        path = self._files.status(key)
        data = atomic.read(path)
        if data is None:
            return None
        try:
            return mps_files.Status.parse(data, path.name)
        except errors.BadInput as e:
            raise errors.NodeFault("read", str(path), str(e)) from e

    def desired_keys(self) -> tuple[str, ...]:
        """The daemons that are wanted."""
        try:
            found = sorted(self._files.desired_dir.glob(f"*{mps_files.SUFFIX}"))
        except OSError as e:
            raise errors.NodeFault("list", str(self._files.desired_dir), str(e)) from e
        return tuple(path.name.removesuffix(mps_files.SUFFIX) for path in found)

    def _wait_ready(self, key: str, digest: str) -> mps_files.Status:
        began = self._clock.monotonic()
        while True:
            found = self.status(key)
            if found is not None and found.serves(digest, self._boot_id):
                return found
            if problem := self._timeout_reason(began, READY_S):
                said = found.problem if found is not None else ""
                raise errors.NodeFault("start", f"MPS daemon {key}", said or problem)
            self._clock.wait(threading.Event(), _POLL_S)

    def _timeout_reason(self, began: float, patience_s: float) -> str:
        """Why what was begun at a moment is waited for no more; "" while it is."""
        waited_s = self._clock.monotonic() - began
        if waited_s > ALONE_S and not self._is_supervised():
            return "ration-mps-supervisor does not run on this node, or has another --state-dir"
        return f"not after {patience_s:.0f} s" if waited_s > patience_s else ""

    def _is_supervised(self) -> bool:
        """Whether a supervisor has its lock; one that takes it just now may seem to be absent."""
        return flock.is_held(self._files.lock)
