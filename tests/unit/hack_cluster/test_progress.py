import io
from pathlib import Path

import rich.console

from hack.cluster import progress


class Clock:
    """A time that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def a_console(*, terminal: bool) -> tuple[rich.console.Console, io.StringIO]:
    text = io.StringIO()
    return rich.console.Console(file=text, force_terminal=terminal, width=200), text


def test_without_a_terminal_a_line_in_half_a_minute_says_how_far_it_is(tmp_path: Path) -> None:
    clock = Clock()
    console, text = a_console(terminal=False)
    steps = progress.Steps(console, tmp_path / "timings.json", clock)
    with steps.step("Build etcd", 60) as advance:
        for second in range(0, 70, 5):
            clock.now = float(second)
            advance(second / 70, f"{second} of 70 packages")
    assert text.getvalue().splitlines() == [
        "    Build etcd (about 1 min 00 s) ...",
        "    Build etcd: 30 of 70 packages, 30.0 s",
        "    Build etcd: 60 of 70 packages, 1 min 00 s",
        "ok  Build etcd 1 min 05 s",
    ]


def test_two_steps_are_shown_at_once_with_what_each_reported(tmp_path: Path) -> None:
    console, text = a_console(terminal=True)
    steps = progress.Steps(console, tmp_path / "timings.json", Clock())
    with steps.step("Build etcd", 60) as first, steps.step("Build helm", 60) as second:
        first(0.2, "20 of 100 packages")
        second(0.5, "50 of 100 packages")
    shown = text.getvalue()
    assert all(entry in shown for entry in ("20 of 100 packages", "50 of 100 packages"))


def test_a_step_after_all_others_ended_is_shown_again(tmp_path: Path) -> None:
    console, text = a_console(terminal=True)
    steps = progress.Steps(console, tmp_path / "timings.json", Clock())
    for name in ("first", "second"):
        with steps.step(name, 1) as advance:
            advance(0.5, f"half of {name}")
    assert "half of second" in text.getvalue()


def test_the_next_estimate_is_what_the_step_took_here(tmp_path: Path) -> None:
    clock = Clock()
    for _ in range(2):
        console, text = a_console(terminal=False)
        with progress.Steps(console, tmp_path / "timings.json", clock).step("Build etcd", 60):
            clock.now += 90.0
    assert "about 1 min 30 s" in text.getvalue()
