"""Runs the steps of a round: each one's output is kept in a log, its last line told."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from driver import clock
from hack.cluster import shell
from tests.fresh import caches, plan, results

_LONGEST = 160


def clone(source: Path, commit: str, into: Path) -> None:
    """Make a checkout of a commit. Raises CommandFailedError."""
    for words in plan.clone(source, commit, into):
        shell.run(words)


def run(
    position: plan.Place,
    number: int,
    steps: Sequence[plan.Step],
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> results.Round:
    """Run the steps of a round up to the first that fails, and then those that clear up."""
    position.home.mkdir(parents=True, exist_ok=True)
    previous = caches.sizes(position.caches())
    ended: list[results.Ended] = []
    for step in steps:
        if step.clears or all(ended.code == 0 for ended in ended):
            say(f"{step.text} ...")
            ended.append(
                _run(step, position.checkout(number), position.log(number, step.name), environment)
            )
    grown = caches.grown(previous, caches.sizes(position.caches()))
    took = (
        caches.timings(position.home / ".cache" / "ration" / "timings.json") if number == 1 else {}
    )
    return results.Round("cold" if number == 1 else "warm", tuple(ended), grown, took)


def _run(
    step: plan.Step, checkout: Path, log: Path, environment: Mapping[str, str]
) -> results.Ended:
    log.parent.mkdir(parents=True, exist_ok=True)
    time = clock.SystemClock()
    began = time.monotonic()
    with log.open("w") as written:
        code = subprocess.run(
            step.words,
            cwd=checkout,
            env=environment,
            stdout=written,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        ).returncode
    seconds = round(time.monotonic() - began)
    strips = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return results.Ended(step.text, code, seconds, (strips[-1] if strips else "")[:_LONGEST])
