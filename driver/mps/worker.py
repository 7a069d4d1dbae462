"""One thread per key, so that a slow or failing daemon delays only itself.

The process is the parent of all tenants' daemons: no failure of one key may end it.
"""

import math
import os
import select
import threading

import structlog

from driver import errors
from driver.mps.daemon import reconcile_policy, reconciler

_log = structlog.get_logger(__name__)
_AGAIN_S = 1.0
_UNEXPECTED_S = 10.0
"""Pause after an unexpected failure, which is logged with its traceback each time."""


class Worker:
    """Thread that reconciles a daemon when something is due, on a new goal, and when it ends."""

    def __init__(
        self, key: str, reconciler: reconciler.DaemonReconciler, goal: reconcile_policy.Goal
    ) -> None:
        self._key = key
        self._reconciler = reconciler
        self._goal = goal
        self._guard = threading.Lock()
        self._finished = False
        self._stop = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name=f"mps {key}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def set_goal(self, goal: reconcile_policy.Goal) -> bool:
        """Set the goal; returns False if it was too late, and a new worker is needed."""
        with self._guard:
            if self._finished:
                return False
            if goal != self._goal:
                self._goal = goal
                self._wake_thread()
            return True

    def stop(self) -> None:
        """Make the thread end; the daemon stays as it is."""
        with self._guard:
            self._stop = True
            if not self._finished:
                self._wake_thread()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is left to manage."""
        with self._guard:
            return self._finished

    def _wake_thread(self) -> None:
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        try:
            while not self._stop and not self._reconcile():
                continue
        except Exception:  # noqa: BLE001 - the next sync starts another
            _log.exception("worker ended", key=self._key)
        finally:
            with self._guard:
                self._finished = True
                os.close(self._wake)

    def _reconcile(self) -> bool:
        goal = self._goal
        try:
            wait_s = self._reconciler.reconcile(goal)
        except errors.NodeFault as e:
            _log.error("daemon not kept", key=self._key, problem=str(e))
            wait_s = _AGAIN_S
        except Exception:  # noqa: BLE001 - whatever it is, it is this key's
            _log.exception("daemon not kept", key=self._key)
            wait_s = _UNEXPECTED_S
        if wait_s is not None:
            self._wait(wait_s)
            return False
        with self._guard:
            # Wanted again while it was cleared away: go on.
            self._finished = isinstance(self._goal, reconcile_policy.NoDaemon)
            return self._finished

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self._reconciler.descriptor is not None:
            poll.register(self._reconciler.descriptor, select.POLLIN)
        if any(fd == self._wake for fd, _ in poll.poll(math.ceil(seconds * 1000))):
            os.eventfd_read(self._wake)
