"""Progress of long work on standard error: a bar for people, periodic lines for logs."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

from driver import clock

_EVERY_S = 5.0


class ReportProgress(Protocol):
    """Hears how much is done, and of how much."""

    def __call__(self, done: int, total: int, /) -> None:
        """Report progress."""
        ...


@contextlib.contextmanager
def show_progress(subject: str, time: clock.Clock) -> Iterator[ReportProgress]:
    """Tells of work that takes more than a moment."""
    if not sys.stderr.isatty():
        yield _Lines(subject, time)
        return
    import rich.console  # noqa: PLC0415 - rich is loaded only where a bar is drawn
    import rich.progress  # noqa: PLC0415

    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(console=console, transient=True) as bar:
        task = bar.add_task(subject, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    def __init__(self, subject: str, time: clock.Clock) -> None:
        self._what = subject
        self._time = time
        self._next = time.monotonic() + _EVERY_S

    def __call__(self, done: int, total: int, /) -> None:
        now = self._time.monotonic()
        if now >= self._next and done < total:
            self._next = now + _EVERY_S
            print(f"{self._what}: {done} of {total}", file=sys.stderr, flush=True)
