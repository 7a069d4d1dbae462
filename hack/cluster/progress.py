"""What a person sees while the cluster works: each step, its bar, and how long it should take."""

import contextlib
import io
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import rich.console
import rich.progress
import rich.progress_bar

Advance = Callable[[float, str], None]
"""Report of a step: the share done, from 0 to 1 (0: not known), and in words how far it is."""
_SAY_EVERY_S = 30.0


class Steps:
    """Steps on the terminal, several at once too; `timings` remembers how long each took here."""

    def __init__(
        self,
        console: rich.console.Console,
        timings: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._timings = timings
        self._clock = clock
        self._lock = threading.Lock()
        self._bars: rich.progress.Progress | None = None
        self._open = 0
        self._known: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError):
            self._known = json.loads(timings.read_text())

    def say(self, text: str) -> None:
        """One line."""
        self._console.print(text, highlight=False)

    @contextlib.contextmanager
    def step(self, title: str, expected: float) -> Iterator[Advance]:
        """Show a step. `expected` seconds are the estimate until this machine has its own.

        The caller may report how far it is; otherwise the bar follows the estimate. Where there is
        no terminal, a line in half a minute says what was reported.
        """
        estimate = self._known.get(title, expected)
        started = self._clock()
        if self._console.is_terminal:
            with self._bar(title, estimate) as advance:
                yield advance
        else:
            self.say(f"    {title} (about {_duration(estimate)}) ...")
            yield self._lines(title, started)
        took = self._clock() - started
        self.say(f"[green]ok[/]  {title} [dim]{_duration(took)}[/]")
        self._remember(title, took)

    def _lines(self, title: str, started: float) -> Advance:
        due = started + _SAY_EVERY_S

        def advance(_: float, told: str) -> None:
            nonlocal due
            now = self._clock()
            if now >= due:
                due = now + _SAY_EVERY_S
                self.say(f"    {title}: {told}, {_duration(now - started)}")

        return advance

    @contextlib.contextmanager
    def _bar(self, title: str, estimate: float) -> Iterator[Advance]:
        with self._display() as bars:
            task = bars.add_task(title, total=1.0, estimate=estimate, told="")
            try:
                yield lambda share, told: bars.update(task, completed=share, told=told)
            finally:
                bars.refresh()
                bars.remove_task(task)

    @contextlib.contextmanager
    def _display(self) -> Iterator[rich.progress.Progress]:
        """The one display of all steps under way: a console has no more than one."""
        with self._lock:
            if self._bars is None:
                self._bars = _progress(self._console)
                self._bars.start()
            self._open += 1
            bars = self._bars
        try:
            yield bars
        finally:
            with self._lock:
                self._open -= 1
                if not self._open:
                    bars.stop()
                    self._bars = None

    def _remember(self, title: str, took: float) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._known[title] = round(took, 1)
            self._timings.parent.mkdir(parents=True, exist_ok=True)
            self._timings.write_text(json.dumps(self._known, indent=1))


def quiet() -> Steps:
    """Steps that nobody sees, for a caller that has a terminal of its own; none is remembered."""
    return Steps(rich.console.Console(file=io.StringIO()), Path(os.devnull))


class _EstimateColumn(rich.progress.ProgressColumn):
    """A bar that follows the reported share, or the clock while none is reported."""

    def render(self, task: rich.progress.Task) -> rich.progress_bar.ProgressBar:
        """The bar; it never claims to be done before the step is."""
        estimate = max(task.fields["estimate"], 0.1)
        share = task.completed or min((task.elapsed or 0.0) / estimate, 0.97)
        return rich.progress_bar.ProgressBar(total=1.0, completed=share, width=24)


class _AboutColumn(rich.progress.ProgressColumn):
    """What was reported, and how long the step should take."""

    def render(self, task: rich.progress.Task) -> str:
        """Both on a line."""
        told = task.fields["told"]
        about = f"[dim]of about {_duration(task.fields['estimate'])}[/]"
        return f"{about}  {told}" if told else about


def _progress(console: rich.console.Console) -> rich.progress.Progress:
    return rich.progress.Progress(
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}"),
        _EstimateColumn(),
        rich.progress.TimeElapsedColumn(),
        _AboutColumn(),
        console=console,
        transient=True,
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"
