"""Named threads that fail together and stop in reverse order; the main thread only waits."""

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from driver import clock

STOP_S = 10.0
"""All of a clean stop."""
DEATH_S = 5.0
"""Limit from the death of a thread to the end of the process (F-23)."""
_GRACE_S = 2.0
_LEAST_S = 0.5
"""For each thread to stop, however long others took: a Lease is released after all that write."""
_LOOK_S = 1.0
"""A signal that comes just before the main thread waits, or to another thread, does not wake it."""
_POLL_S = 0.2

Target = Callable[[threading.Event], None]
HardExit = Callable[[int], object]
"""`os._exit`."""


def start_after(event: threading.Event, target: Target, time: clock.Clock) -> Target:
    """Return a target that runs `target` once `event` is set."""

    def run(stop: threading.Event) -> None:
        while not stop.is_set():
            if time.wait(event, _POLL_S):
                target(stop)
                return

    return run


class Log(Protocol):
    """Interface of structlog's loggers."""

    def info(self, event: str, /, **keys: object) -> object:
        """Log a step."""
        ...

    def error(self, event: str, /, **keys: object) -> object:
        """Log a failure; `exc_info` holds it."""
        ...


@dataclass(slots=True)
class _Part:
    """Something to stop: a thread, or only a callback."""

    name: str
    callback: Callable[[], None] | None = None
    thread: threading.Thread | None = None
    stop: threading.Event = field(default_factory=threading.Event)


class Lifecycle:
    """Register threads and callbacks, then `run`.

    A thread's target takes the Event that stops it, and returns soon after it is set; one that
    returns earlier, or raises, ends the process with exit code 1.
    """

    def __init__(
        self,
        log: Log,
        clock: clock.Clock,
        hard_exit: HardExit = os._exit,
        stop_s: float = STOP_S,
        death_s: float = DEATH_S,
    ) -> None:
        self._log = log
        self._clock = clock
        self._hard_exit = hard_exit
        self._stop_s = stop_s
        self._death_s = death_s
        self._parts: list[_Part] = []
        self._wake = threading.Event()
        self._dead: str | None = None

    def thread(
        self, name: str, target: Target, *, interrupt: Callable[[], None] | None = None
    ) -> None:
        """Make `run` start `target` on a thread; `interrupt` wakes it once its Event is set."""
        part = _Part(name, interrupt)
        part.thread = threading.Thread(
            target=self._run_guarded, args=(part, target), name=name, daemon=True
        )
        self._parts.append(part)

    def on_stop(self, name: str, callback: Callable[[], None]) -> None:
        """Call `callback` at its turn in the stop."""
        self._parts.append(_Part(name, callback))

    def stop(self) -> None:
        """Stop cleanly, as SIGTERM does; from any thread."""
        self._wake.set()

    def run(self) -> int:
        """Start every thread in order and wait; return the process's exit code.

        Call on the main thread. 0 after SIGTERM or SIGINT, 1 if a thread died. If threads do not
        stop, the process is terminated with that code.
        """
        previous = {s: signal.signal(s, self._on_signal) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            for part in self._parts:
                if part.thread is not None:
                    part.thread.start()
            while not self._clock.wait(self._wake, _LOOK_S):
                continue
            return self._stop_all()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._wake.set()

    def _run_guarded(self, part: _Part, target: Target) -> None:
        try:
            target(part.stop)
        except BaseException:  # noqa: BLE001 - the work loop's last resort: whatever it was, we end
            self._log.error("thread died", thread=part.name, exc_info=True)
        else:
            if part.stop.is_set():
                return
            self._log.error("thread ended", thread=part.name)
        self._dead = part.name
        self._wake.set()

    def _stop_all(self) -> int:
        code = 0 if self._dead is None else 1
        limit_s = self._stop_s if code == 0 else self._death_s
        self._start_watchdog(code, limit_s)
        self._log.info("stopping", cause=self._dead or "signal")
        deadline = self._clock.monotonic() + (limit_s if code == 0 else limit_s / 2)
        for part in reversed(self._parts):
            self._stop_part(part, deadline)
        return 0 if code == 0 and self._dead is None else 1

    def _stop_part(self, part: _Part, deadline: float) -> None:
        part.stop.set()
        if part.callback is not None:
            try:
                part.callback()
            except Exception:  # noqa: BLE001 - one callback must not keep the others from running
                self._log.error("stop failed", part=part.name, exc_info=True)
        if part.thread is None:
            return
        part.thread.join(max(_LEAST_S, deadline - self._clock.monotonic()))
        if part.thread.is_alive():
            self._log.error("thread did not stop", thread=part.name)

    def _start_watchdog(self, code: int, limit_s: float) -> None:
        """Terminate the process if it still runs after `limit_s`, whatever hangs."""
        grace_s = _GRACE_S if code == 0 else 0.0

        def wait() -> None:
            self._clock.wait(threading.Event(), limit_s + grace_s)
            self._hard_exit(code)

        threading.Thread(target=wait, name="watchdog", daemon=True).start()
