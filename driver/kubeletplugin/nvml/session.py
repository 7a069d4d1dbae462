"""The time between NVML's start and its end, shared by those who use it.

Whoever is inside `use` may call NVML and wait in it. The library is ended, and started anew by the
next use, only when nobody is: handles and event sets belong to one start, so each has its number.
Started, it keeps every GPU open that it was asked for, and such a GPU cannot be reset: `paused` is
for that.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

from driver import errors

Act = Callable[[], None]


class Session:
    """`start` raises DeviceFault; `end` does not raise. Thread safe."""

    def __init__(self, start: Act, end: Act) -> None:
        self._start = start
        self._end = end
        self._changed = threading.Condition()
        self._users = 0
        self._ending = False
        self._starts = 0
        self._open = False
        self._before_end: list[Act] = []

    def before_end(self, act: Act) -> None:
        """Have `act` free what belongs to the present start before its end, while nobody is inside.

        It calls the library without `use`, and does not raise. To be asked for before any `use`.
        """
        self._before_end.append(act)

    @property
    def number(self) -> int:
        """The present start's number, from 1; 0 while the library is not started."""
        return self._starts if self._open else 0

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        """Have the library started until the exit; the start's number. Raises DeviceFault."""
        with self._changed:
            while self._ending:
                self._changed.wait()
            if not self._open:
                self._start()
                self._open = True
                self._starts += 1
            self._users += 1
            number = self._starts
        try:
            yield number
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def drop(self, number: int) -> None:
        """That start has failed or grown old: end it once its users have left. Not within `use`."""
        with self._changed:
            while self._ending:
                self._changed.wait()
            if number != self.number or not self._open:
                return
            self._ending = True
            while self._users:
                self._changed.wait()
            self._let_go()
            self._resume()

    @contextlib.contextmanager
    def paused(self, patience_s: float) -> Iterator[None]:
        """Have the library ended until the exit; who wants to use it waits. Not within `use`.

        Raises NodeFault when somebody is inside for so long: a call may hang on a sick GPU.
        """
        with self._changed:
            while self._ending:
                self._changed.wait()
            self._ending = True
            if not self._changed.wait_for(lambda: not self._users, patience_s):
                self._resume()
                raise errors.NodeFault("let go of", "NVML", f"in use for {patience_s:g} s")
            self._let_go()
        try:
            yield
        finally:
            with self._changed:
                self._resume()

    def _let_go(self) -> None:
        if not self._open:
            return
        for act in self._before_end:
            act()
        self._end()
        self._open = False

    def _resume(self) -> None:
        self._ending = False
        self._changed.notify_all()

    def close(self) -> None:
        """Let go of the library; the next use starts it again."""
        self.drop(self.number)
