"""Results as every suite writes them: benchmarks/results/<suite>.json."""

import dataclasses
import datetime as dt
import json
import re
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import calibrators, machine

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
_NO_WORD = re.compile(r"[^a-z0-9.]+")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `ratio` is ours to the reference's; `spread` min-max.

    `reference` None: nothing to measure beside it in this run. `says`: the suite's own verdict,
    where a bar is more than a number.
    """

    name: str
    unit: str
    ours: float
    reference: float | None = None
    ratio: float | None = None
    spread: str = ""
    seed: int = 0
    commit: str = ""
    says: str = ""

    @property
    def key(self) -> str:
        """What is left of the name in an identifier."""
        return _NO_WORD.sub("-", self.name.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class Run:
    """What a suite has measured, and where: `calibrators` in ms, none of an old run."""

    suite: str
    date: str
    on: machine.Machine
    calibrators: Mapping[str, float]
    figures: tuple[Figure, ...]

    def by_id(self) -> dict[str, Figure]:
        """Its figures by `suite/key`, which stays while the name does."""
        return {f"{self.suite}/{one.key}": one for one in self.figures}


def figure(
    name: str,
    unit: str,
    ours: Sequence[float],
    reference: Sequence[float] | None = None,
    *,
    seed: int = 0,
) -> Figure:
    """Medians of two samples and their ratio. What is wanted of it stands in `goals`."""
    mine = statistics.median(ours)
    other = statistics.median(reference) if reference else None
    beside = f"; reference {_range(reference)}" if reference else ""
    return Figure(
        name,
        unit,
        _rounded(mine),
        None if other is None else _rounded(other),
        _rounded(mine / other) if other else None,
        spread=_range(ours) + beside,
        seed=seed,
        commit=commit(),
    )


def replaced(one: Figure, ours: float, spread: str = "") -> Figure:
    """The figure with another value than the median, such as the worst; its spread stays."""
    return dataclasses.replace(one, ours=_rounded(ours), spread=spread or one.spread)


def _rounded(value: float) -> float:
    """To four digits, and no less than whole numbers: more is noise."""
    return float(f"{value:.4g}") if abs(value) < 1000 else float(round(value))  # noqa: PLR2004


def _range(sample: Sequence[float]) -> str:
    return f"{_rounded(min(sample)):g}-{_rounded(max(sample)):g}, n={len(sample)}"


def percentile(sample: Sequence[float], part: float) -> float:
    """The value below which `part` of the sample lies."""
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def commit() -> str:
    """What is checked out."""
    return _git("rev-parse", "--short", "HEAD").strip()


def write(suite: str, figures: Sequence[Figure]) -> Path:
    """Store a suite's figures with the machine they were measured on, and print them."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    on = machine.here()
    run = Run(suite, today, on, calibrators.measure(), tuple(figures))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{suite}.json"
    path.write_text(json.dumps(dataclasses.asdict(run), indent=2) + "\n")
    for one in figures:
        print(line(one))
    return path


def load() -> list[Run]:
    """What every suite has stored last."""
    return [_run(json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json"))]


def committed(revision: str) -> list[Run]:
    """What every suite had stored at a revision of git."""
    folder = str(RESULTS.relative_to(ROOT))
    names = _git("ls-tree", "--name-only", revision, f"{folder}/").split()
    return [_run(json.loads(_git("show", f"{revision}:{name}"))) for name in names]


def _run(raw: Mapping[str, Any]) -> Run:
    return Run(
        raw["suite"],
        raw["date"],
        machine.Machine(**raw["on"]),
        raw["calibrators"],
        tuple(Figure(**one) for one in raw["figures"]),
    )


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def line(one: Figure) -> str:
    """A figure for people."""
    beside = "" if one.reference is None else f"  reference {one.reference} ratio {one.ratio}"
    return f"{one.name:48} {one.ours:10} {one.unit}{beside}  ({one.spread})  {one.says}"
