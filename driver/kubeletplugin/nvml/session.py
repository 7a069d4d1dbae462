"""Reference-counted NVML session, shared by its users.

Within `use` a caller may call NVML and wait in it. Handles and event sets belong to one start, so
each start has a number. A dropped start is closed to new users; it ends when its last user leaves,
and a hanging call in it blocks no new user. While started, the library keeps open every GPU that
was queried, and such a GPU cannot be reset: `paused` is for that.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

from driver import clock, errors

Act = Callable[[], None]
Ending = Callable[[int], None]
"""Takes the number of the start that ends."""
DRAIN_S: Final = 2.0
"""Longest wait for a dropped start to end before the next; a wait for events takes a second."""
WAIT_S: Final = 75.0
"""Longest wait for another's start or pause; a reset takes a minute at most."""


class Session:
    """`start` raises DeviceFault; `end` does not raise. Thread safe.

    NVML counts its starts: a start beside another that has not ended yet is the same library, with
    the same handles. It is loaded anew only when it has ended as often.
    """

    def __init__(self, start: Act, end: Act, time: clock.Clock | None = None) -> None:
        self._start = start
        self._end = end
        self._time = time or clock.SystemClock()
        self._changed = threading.Condition()
        self._users: dict[int, int] = {}
        self._number = 0
        self._starts = 0
        self._starting = False
        self._pausing = False
        self._end_callbacks: list[Ending] = []

    def on_end(self, act: Ending) -> None:
        """Register `act`, which frees the state of a start before its end, when it has no users.

        `act` calls the library without `use`, and does not raise. Register before any `use`.
        """
        self._end_callbacks.append(act)

    @property
    def number(self) -> int:
        """Number of the current start, from 1; 0 while the library is not started."""
        return self._number

    def is_open(self, number: int) -> bool:
        """Return whether that start has not ended yet, even if it is dropped."""
        return number in self._users

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        """Keep the library started until the exit; yield the start's number. Raises DeviceFault."""
        number = self._acquire()
        try:
            yield number
        finally:
            self._release(number)

    def drop(self, number: int) -> None:
        """Drop a failed or outdated start: new users get a new one. Does not wait.

        Not within `use`.
        """
        with self._changed:
            if not number or number != self._number:
                return
            self._number = 0
            is_free = not self._users[number]
        if is_free:
            self._end_start(number)

    @contextlib.contextmanager
    def paused(self, patience_s: float) -> Iterator[None]:
        """Keep the library ended until the exit; new users wait. Not within `use`.

        Raises NodeFault if it stays in use for `patience_s`: a call may hang on a faulty GPU.
        """
        deadline = self._time.monotonic() + patience_s
        with self._changed:
            if not self._wait_for(lambda: not (self._pausing or self._starting), deadline):
                raise _in_use_fault(patience_s)
            self._pausing = True
            number, is_free = self._number, self._wait_for(self._is_idle, deadline)
            self._number = 0 if is_free else number
        try:
            if not is_free:
                raise _in_use_fault(patience_s)
            if number:
                self._end_start(number)
            yield
        finally:
            with self._changed:
                self._pausing = False
                self._changed.notify_all()

    def close(self) -> None:
        """Release the library; the next use starts it again."""
        self.drop(self._number)

    def _acquire(self) -> int:
        """Count as a user of the current start; begin one if there is none."""
        deadline = self._time.monotonic() + WAIT_S
        with self._changed:
            if not self._wait_for(lambda: not (self._pausing or self._starting), deadline):
                raise errors.DeviceFault("", "waiting for NVML", -1, f"not for {WAIT_S:g} s")
            if self._number:
                self._users[self._number] += 1
                return self._number
            self._starting = True
            self._wait_for(lambda: not self._users, self._time.monotonic() + DRAIN_S)
        try:
            self._start()
        except BaseException:
            with self._changed:
                self._starting = False
                self._changed.notify_all()
            raise
        with self._changed:
            self._starts += 1
            self._number = self._starts
            self._users[self._number] = 1
            self._starting = False
            self._changed.notify_all()
            return self._number

    def _release(self, number: int) -> None:
        with self._changed:
            self._users[number] -= 1
            is_over = number != self._number and not self._users[number]
            self._changed.notify_all()
        if is_over:
            self._end_start(number)

    def _end_start(self, number: int) -> None:
        """End a dropped start without users, outside the lock: the library is called."""
        try:
            for act in self._end_callbacks:
                act(number)
            self._end()
        finally:
            with self._changed:
                del self._users[number]
                self._changed.notify_all()

    def _is_idle(self) -> bool:
        """Return whether no start has users, and no dropped start has yet to end."""
        return not any(self._users.values()) and not self._users.keys() - {self._number}

    def _wait_for(self, holds: Callable[[], bool], deadline: float) -> bool:
        """Wait for `holds`; the caller has the lock, which is released meanwhile."""
        return self._changed.wait_for(holds, max(0.0, deadline - self._time.monotonic()))


def _in_use_fault(patience_s: float) -> errors.NodeFault:
    return errors.NodeFault("let go of", "NVML", f"in use for {patience_s:g} s")
