"""One thread a key, so that what is slow holds up nothing but itself."""

import math
import os
import select
import threading

import structlog

from driver import errors
from driver.mps import decision, keeper

_log = structlog.get_logger(__name__)
_AGAIN_S = 1.0


class Worker:
    """A thread that steps a keeper: when something is due, when told, and when the daemon ends."""

    def __init__(self, key: str, of: keeper.Keeper, goal: decision.Goal) -> None:
        self._key = key
        self._keeper = of
        self._goal = goal
        self._guard = threading.Lock()
        self._finished = False
        self._stop = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"mps {key}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def want(self, goal: decision.Goal) -> bool:
        """Have another goal; False when it was too late, and a new worker is needed."""
        with self._guard:
            if self._finished:
                return False
            if goal != self._goal:
                self._goal = goal
                self._rouse()
            return True

    def stop(self) -> None:
        """Ask the thread to end; the daemon stays as it is."""
        with self._guard:
            self._stop = True
            if not self._finished:
                self._rouse()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to keep."""
        with self._guard:
            return self._finished

    def _rouse(self) -> None:
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        try:
            while not self._stop and not self._is_done():
                continue
        except BaseException as e:  # noqa: BLE001 - the supervisor ends with it
            _log.error("worker died", key=self._key, exc_info=True)
            self.failure = e
        finally:
            with self._guard:
                self._finished = True
                os.close(self._wake)

    def _is_done(self) -> bool:
        goal = self._goal
        try:
            wait_s = self._keeper.step(goal)
        except errors.NodeFault as e:
            _log.error("daemon not kept", key=self._key, problem=str(e))
            wait_s = _AGAIN_S
        if wait_s is not None:
            self._wait(wait_s)
            return False
        with self._guard:
            # Wanted again while it was cleared away: go on.
            self._finished = isinstance(self._goal, decision.Unwanted)
            return self._finished

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self._keeper.descriptor is not None:
            poll.register(self._keeper.descriptor, select.POLLIN)
        if any(fd == self._wake for fd, _ in poll.poll(math.ceil(seconds * 1000))):
            os.eventfd_read(self._wake)
