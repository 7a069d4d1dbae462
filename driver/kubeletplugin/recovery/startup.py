"""Startup recovery, and an excepthook that ends the process when a library thread dies."""

import threading
from collections.abc import Callable

import structlog

from driver import clock, errors
from driver.kube import backoff

_log = structlog.get_logger(__name__)
_POLL_S = 1.0
RECOVERING = backoff.Pace(base_s=2.0, max_s=20.0)


class StartupRecovery:
    """Runs `recover` until nothing is left undone; `run` is a thread's target.

    `ran_once` is set after the first completed round: the kubelet may be served then, even if
    single claims could not be recovered yet (a driver that comes up late).
    """

    def __init__(
        self,
        recover: Callable[[], tuple[str, ...]],
        pause: backoff.Backoff,
        clock: clock.Clock,
    ) -> None:
        self._recover = recover
        self._pause = pause
        self._clock = clock
        self._problem: str | None = "recovery has not run yet"
        self.ran_once = threading.Event()

    def problem(self) -> str | None:
        """Return what is not recovered; None if all is."""
        return self._problem

    def run(self, stop: threading.Event) -> None:
        """Recover, then wait for `stop`."""
        while not stop.is_set():
            self._problem = self._attempt()
            if self._problem is None:
                stop.wait()
                return
            self._clock.wait(stop, self._pause.after_failure())

    def _attempt(self) -> str | None:
        try:
            problems = self._recover()
        except errors.RationError as e:
            _log.warning("recovery failed", error=str(e))
            return f"recovery failed: {e}"
        self.ran_once.set()
        return f"not recovered: {'; '.join(problems)}" if problems else None


class LibraryThreadGuard:
    """Guards threads started by libraries (gRPC's own): if one dies, the process ends.

    `hook` becomes `threading.excepthook`; `run` is a thread's target.
    """

    def __init__(self, clock: clock.Clock) -> None:
        self._clock = clock
        self._died = threading.Event()
        self._name = ""

    def hook(self, died: threading.ExceptHookArgs) -> None:
        """Record a thread that an exception ended."""
        self._name = died.thread.name if died.thread else "unknown"
        _log.error(
            "library thread died",
            thread=self._name,
            exc_info=(died.exc_type, died.exc_value, died.exc_traceback),
        )
        self._died.set()

    def run(self, stop: threading.Event) -> None:
        """Wait; raises NodeFault when a thread has died."""
        while not stop.is_set():
            if self._clock.wait(self._died, _POLL_S):
                raise errors.NodeFault("keep alive", f"thread {self._name}", "it died")
