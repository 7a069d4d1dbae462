"""The time between NVML's start and its end, shared by those who use it.

Whoever is inside `use` may call NVML and wait in it. Handles and event sets belong to one start, so
each has its number. A start that is dropped is over for all who come later; it ends when the last
one inside has left, and a call that hangs in it keeps nobody else out. Started, the library keeps
every GPU open that it was asked for, and such a GPU cannot be reset: `paused` is for that.
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

    NVML counts its starts: one beside another that still ends is the same library, with the same
    handles. Only when it has ended as often is it read anew.
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
        """Have `act` free what belongs to a start before its end, when nobody is inside.

        It calls the library without `use`, and does not raise. To be asked for before any `use`.
        """
        self._end_callbacks.append(act)

    @property
    def number(self) -> int:
        """The present start's number, from 1; 0 while the library is not started."""
        return self._number

    def is_open(self, number: int) -> bool:
        """Whether that start has not ended yet, be it dropped."""
        return number in self._users

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        """Have the library started until the exit; the start's number. Raises DeviceFault."""
        number = self._acquire()
        try:
            yield number
        finally:
            self._release(number)

    def drop(self, number: int) -> None:
        """That start has failed or grown old: whoever comes now gets a new one. Waits for nobody.

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
        """Have the library ended until the exit; who wants to use it waits. Not within `use`.

        Raises NodeFault when somebody is inside for so long: a call may hang on a sick GPU.
        """
        until = self._time.monotonic() + patience_s
        with self._changed:
            if not self._wait_for(lambda: not (self._pausing or self._starting), until):
                raise _in_use_fault(patience_s)
            self._pausing = True
            number, is_free = self._number, self._wait_for(self._is_idle, until)
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
        """Let go of the library; the next use starts it again."""
        self.drop(self._number)

    def _acquire(self) -> int:
        """Count as a user of the present start; begin one where there is none."""
        until = self._time.monotonic() + WAIT_S
        with self._changed:
            if not self._wait_for(lambda: not (self._pausing or self._starting), until):
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
        """End a start that is dropped and empty, outside the lock: the library is called."""
        try:
            for act in self._end_callbacks:
                act(number)
            self._end()
        finally:
            with self._changed:
                del self._users[number]
                self._changed.notify_all()

    def _is_idle(self) -> bool:
        """Whether nobody is inside, and no dropped start has yet to end."""
        return not any(self._users.values()) and not self._users.keys() - {self._number}

    def _wait_for(self, holds: Callable[[], bool], until: float) -> bool:
        """The caller has the lock, which others get meanwhile."""
        return self._changed.wait_for(holds, max(0.0, until - self._time.monotonic()))


def _in_use_fault(patience_s: float) -> errors.NodeFault:
    return errors.NodeFault("let go of", "NVML", f"in use for {patience_s:g} s")
