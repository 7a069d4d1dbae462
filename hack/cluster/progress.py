"""What a person sees while the cluster works: each step, its bar, and how long it should take."""

import contextlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import rich.console
import rich.progress
import rich.progress_bar

Advance = Callable[[float], None]


class Steps:
    """Steps on the terminal; `timings` remembers how long each took on this machine."""

    def __init__(self, console: rich.console.Console, timings: Path) -> None:
        self._console = console
        self._timings = timings
        self._known: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError):
            self._known = json.loads(timings.read_text())

    def say(self, text: str) -> None:
        """One line."""
        self._console.print(text, highlight=False)

    @contextlib.contextmanager
    def step(self, title: str, expected: float) -> Iterator[Advance]:
        """Show a step. `expected` seconds are the estimate until this machine has its own.

        The caller may report a share from 0 to 1; otherwise the bar follows the estimate.
        """
        estimate = self._known.get(title, expected)
        started = time.monotonic()
        if self._console.is_terminal:
            with self._bar(title, estimate) as advance:
                yield advance
        else:
            self.say(f"    {title} (about {_duration(estimate)}) ...")
            yield lambda _share: None
        took = time.monotonic() - started
        self.say(f"[green]ok[/]  {title} [dim]{_duration(took)}[/]")
        self._remember(title, took)

    @contextlib.contextmanager
    def _bar(self, title: str, estimate: float) -> Iterator[Advance]:
        bar = rich.progress.Progress(
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description}"),
            _EstimateColumn(estimate),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TextColumn(f"[dim]of about {_duration(estimate)}[/]"),
            console=self._console,
            transient=True,
        )
        with bar:
            task = bar.add_task(title, total=1.0)
            yield lambda share: bar.update(task, completed=share)

    def _remember(self, title: str, took: float) -> None:
        self._known[title] = round(took, 1)
        with contextlib.suppress(OSError):
            self._timings.parent.mkdir(parents=True, exist_ok=True)
            self._timings.write_text(json.dumps(self._known, indent=1))


def quiet() -> Steps:
    """Steps that nobody sees, for a caller that has a terminal of its own; none is remembered."""
    return Steps(rich.console.Console(file=io.StringIO()), Path(os.devnull))


class _EstimateColumn(rich.progress.ProgressColumn):
    """A bar that follows the reported share, or the clock while none is reported."""

    def __init__(self, estimate: float) -> None:
        super().__init__()
        self._estimate = max(estimate, 0.1)

    def render(self, task: rich.progress.Task) -> rich.progress_bar.ProgressBar:
        """The bar; it never claims to be done before the step is."""
        share = task.completed or min((task.elapsed or 0.0) / self._estimate, 0.97)
        return rich.progress_bar.ProgressBar(total=1.0, completed=share, width=24)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"
