"""The plugin's side of the MPS supervisor's files: what is wanted, and whether it is so."""

import threading
from pathlib import Path

from driver import clock, errors
from driver.devices import mps
from driver.files import durable, observer

READY_S = 20.0
"""A daemon is ready in a quarter of a second; what takes longer is failing (the kubelet: 45 s)."""
GONE_S = 10.0
_POLL_S = 0.02
_MODE = 0o644


class MpsDoor:
    """Implements `ports.Daemons` by the supervisor's files."""

    def __init__(self, state_dir: Path, boot_id: str, time: clock.Clock) -> None:
        self._root = state_dir
        self._files = mps.Layout(state_dir)
        self._boot_id = boot_id
        self._clock = time

    @property
    def root(self) -> Path:
        """The supervisor's folder."""
        return self._root

    def want(self, desired: mps.Desired) -> None:
        """Have the daemon, and wait until it answers with what is wanted."""
        self.put(desired)
        self._wait(desired.key, mps.digest(desired.render()))

    def put(self, desired: mps.Desired) -> None:
        """Ask for the daemon, without waiting for it."""
        data = desired.render()
        path = self._files.desired(desired.key)
        if durable.read(path) != data:
            durable.replace(path, data, _MODE, observer.NOBODY)

    def read(self, key: str) -> mps.Desired | None:
        """What is asked of a daemon; None where nothing is, or nothing that can be read."""
        path = self._files.desired(key)
        data = durable.read(path)
        try:
            return mps.Desired.parse(data, path.name) if data is not None else None
        except errors.BadInput:
            return None

    def forget(self, key: str) -> None:
        """Have no daemon, and wait until it is gone."""
        durable.remove(self._files.desired(key), observer.NOBODY)
        deadline = self._clock.monotonic() + GONE_S
        while self._files.status(key).exists():
            if self._clock.monotonic() > deadline:
                raise errors.NodeFault("end", f"MPS daemon {key}", f"not gone after {GONE_S:.0f} s")
            self._clock.wait(threading.Event(), _POLL_S)

    def status(self, key: str) -> mps.Status | None:
        """How the daemon is, as the supervisor said last."""
        path = self._files.status(key)
        data = durable.read(path)
        if data is None:
            return None
        try:
            return mps.Status.parse(data, path.name)
        except errors.BadInput as e:
            raise errors.NodeFault("read", str(path), str(e)) from e

    def wanted(self) -> tuple[str, ...]:
        """The daemons that are wanted."""
        try:
            found = sorted(self._files.desired_dir.glob(f"*{mps.SUFFIX}"))
        except OSError as e:
            raise errors.NodeFault("list", str(self._files.desired_dir), str(e)) from e
        return tuple(path.name.removesuffix(mps.SUFFIX) for path in found)

    def _wait(self, key: str, digest: str) -> None:
        deadline = self._clock.monotonic() + READY_S
        while True:
            found = self.status(key)
            if found is not None and found.serves(digest, self._boot_id):
                return
            if self._clock.monotonic() > deadline:
                raise errors.NodeFault("start", f"MPS daemon {key}", _problem(found))
            self._clock.wait(threading.Event(), _POLL_S)


def _problem(found: mps.Status | None) -> str:
    if found is None:
        return f"no word from the supervisor for {READY_S:.0f} s; does ration-mps-supervisor run?"
    return found.problem or f"it is {found.state.value} after {READY_S:.0f} s"
