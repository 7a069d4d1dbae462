"""Results of the lane's last run, in gates/fresh.json."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

PATH = Path(__file__).parents[1] / "gates" / "fresh.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """A step: its command, exit code, seconds, and the last line it printed."""

    command: str
    code: int
    seconds: int
    last: str


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """All steps from one state of the caches.

    `mib` is what each cache grew by; `took` is how long each set of programs took, in seconds.
    """

    caches: str
    steps: tuple[Ended, ...]
    mib: Mapping[str, int]
    took: Mapping[str, float]

    @property
    def is_green(self) -> bool:
        """Return whether every step ended well."""
        return all(step.code == 0 for step in self.steps)


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A run: of which commit, with which Go, and whether a cluster was booted."""

    commit: str
    go: str
    booted: bool
    rounds: tuple[Round, ...]


def keep(result: Result, path: Path = PATH) -> None:
    """In the place of the one before."""
    path.write_text(json.dumps(dataclasses.asdict(result), indent=2) + "\n")


def lines(result: Round) -> tuple[str, ...]:
    """Return what a round ended with, for people."""
    steps = [
        f"  {'ok' if step.code == 0 else f'exit code {step.code}'}  {step.seconds:5d} s  "
        f"{step.command}: {step.last}"
        for step in result.steps
    ]
    sizes = ", ".join(f"{name} {mib} MiB" for name, mib in result.mib.items() if mib)
    took = [f"  {seconds:7.1f} s  {title}" for title, seconds in result.took.items()]
    return (f"{result.caches} caches:", *steps, f"  fetched and built: {sizes or 'nothing'}", *took)
