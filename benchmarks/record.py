"""Results as every suite writes them: benchmarks/results/<suite>.json."""

import dataclasses
import datetime as dt
import json
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks import calibrators, machine

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
_Round = TypeVar("_Round")
_NO_WORD = re.compile(r"[^a-z0-9.]+")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `ratio` is ours to the reference's; `spread` min-max.

    `reference` None: nothing to measure beside it in this run. `says`: the suite's own verdict,
    where a bar is more than a number. `calibrators`: in ms, those that were measured just before
    and after it; the suite's stand for the others.
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
    calibrators: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What is left of the name in an identifier."""
        return _NO_WORD.sub("-", self.name.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class Run:
    """A suite's figures, and the machine: `calibrators` in ms, none of an old run.

    `took_s`: the seconds that the suite took; None where it was not noted.
    """

    suite: str
    date: str
    on: machine.Machine
    calibrators: Mapping[str, float]
    figures: tuple[Figure, ...]
    took_s: float | None = None

    def by_id(self) -> dict[str, Figure]:
        """Its figures by `suite/key`, which stays while the name does."""
        return {f"{self.suite}/{measured.key}": measured for measured in self.figures}


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of a suite: its moment, and what the calibrators took then, in ms."""

    moment_s: float = field(default_factory=time.monotonic)
    calibrators: Mapping[str, float] = field(default_factory=calibrators.measure)

    @property
    def took_s(self) -> float:
        """The seconds since."""
        return time.monotonic() - self.moment_s


def figure(
    name: str,
    unit: str,
    ours: Sequence[float],
    reference: Sequence[float] | None = None,
    *,
    seed: int = 0,
    center: Callable[[Sequence[float]], float] = statistics.median,
) -> Figure:
    """Medians of two samples and their ratio, or another `center`. `goals` has what is wanted."""
    middle = center(ours)
    other = center(reference) if reference else None
    beside = f"; reference {_range(reference)}" if reference else ""
    return Figure(
        name,
        unit,
        _rounded(middle),
        None if other is None else _rounded(other),
        _rounded(middle / other) if other else None,
        spread=_range(ours) + beside,
        seed=seed,
        commit=commit(),
    )


def p99(
    name: str,
    unit: str,
    ours: Sequence[Sequence[float]],
    reference: Sequence[Sequence[float]] | None = None,
    *,
    seed: int = 0,
) -> Figure:
    """Median of the rounds' 99th percentiles: the p99 of one round hangs on its worst call."""
    slowest, others = (
        [percentile(sample, 0.99) for sample in rounds] for rounds in (ours, reference or ())
    )
    return figure(name, unit, slowest, others or None, seed=seed)


def tail(
    name: str,
    unit: str,
    ours: Sequence[Sequence[float]],
    reference: Sequence[Sequence[float]] = (),
    *,
    stretch: int,
) -> Figure:
    """Median of the rounds' 99th percentiles of calls in succession, as `tails` has them."""
    return figure(name, unit, tails(ours, stretch), tails(reference, stretch) or None)


def tails(rounds: Sequence[Sequence[float]], stretch: int, quantile: float = 0.99) -> list[float]:
    """Return a quantile of each round's calls in succession; no pause of the machine moves it.

    `stretch`: how many calls one pause slows; of each stretch only the slowest call counts. Where
    a call is below a value with probability q, the slowest is with q ** stretch.
    """
    part = quantile**stretch
    return [float(np.quantile(_slowest(calls, stretch), part)) for calls in rounds]


def _slowest(calls: Sequence[float], stretch: int) -> list[float]:
    """Return the slowest call of each stretch; what is left over belongs to the last one."""
    return [
        max(calls[start : start + stretch if start + 2 * stretch <= len(calls) else None])
        for start in range(0, max(len(calls) - stretch, 0) + 1, stretch)
    ]


@dataclass(frozen=True, slots=True)
class Calibrations:
    """Calibrators before the first round of a part and after each, in ms."""

    taken: list[Mapping[str, float]] = field(
        default_factory=lambda: [calibrators.measure_briefly()]
    )

    def between(self, rounds: Iterable[_Round]) -> Iterator[_Round]:
        """Yield the rounds; measure the calibrators after each."""
        for each in rounds:
            yield each
            self.take()

    def take(self) -> None:
        """Measure the calibrators once more."""
        self.taken.append(calibrators.measure_briefly())

    def mean(self, name: str) -> float:
        """Return what a calibrator took on average, in ms."""
        return statistics.fmean(ms[name] for ms in self.taken)

    def figure(self, name: str, unit: str, taken: Sequence[float]) -> Figure:
        """Return the geometric mean of a sample that was taken between them, with their means.

        Where a machine has two paces, a median is of the one or the other, a mean of both.
        """
        return self.add_to(figure(name, unit, taken, center=statistics.geometric_mean))

    def add_to(self, measured: Figure) -> Figure:
        """Return the figure with how slow the machine was while it was measured: the means."""
        means = {name: _rounded(self.mean(name)) for name in self.taken[0]}
        return dataclasses.replace(measured, calibrators=means)


def quieter_half(
    rounds: Sequence[tuple[Calibrations, _Round]],
) -> tuple[Calibrations, list[_Round]]:
    """Return the rounds in which the machine was fastest, by the calibrators around each, as one.

    For what queues: near saturation it slows down by far more than the machine does, so that no
    calibrator can scale it. Half of the rounds are left, and at least one.
    """
    by_speed = sorted(rounds, key=lambda taken: taken[0].mean("python"))
    kept = by_speed[: -(-len(by_speed) // 2)]
    around = Calibrations([ms for calibrations, _ in kept for ms in calibrations.taken])
    return around, [measured for _, measured in kept]


def parts(*measures: Callable[[], Iterable[Figure]]) -> list[Figure]:
    """Measure parts of a suite in turn; a figure keeps how slow the machine was around its part.

    One that has it already, from calibrations within its part, keeps that.
    """
    return [figure for measure in measures for figure in _part(measure)]


def _part(measure: Callable[[], Iterable[Figure]]) -> list[Figure]:
    around = Calibrations()
    figures = list(measure())
    around.take()
    return [measured if measured.calibrators else around.add_to(measured) for measured in figures]


def replaced(measured: Figure, ours: float, spread: str = "") -> Figure:
    """Return the figure with another value than the median, such as the worst.

    Its spread stays where none is named.
    """
    return dataclasses.replace(measured, ours=_rounded(ours), spread=spread or measured.spread)


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


def write(suite: str, figures: Sequence[Figure], start: Start | None = None) -> Path:
    """Store a suite's figures with the machine they were measured on, and print them.

    The calibrators are measured once more; with the `start` of the suite each counts half.
    """
    today = dt.datetime.now(dt.UTC).date().isoformat()
    took_s = round(start.took_s, 1) if start else None
    fixed = calibrators.measure()
    if start:
        fixed = {name: _rounded((ms + start.calibrators[name]) / 2) for name, ms in fixed.items()}
    run = Run(suite, today, machine.here(), fixed, tuple(figures), took_s)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{suite}.json"
    path.write_text(json.dumps(dataclasses.asdict(run), indent=2) + "\n")
    for measured in figures:
        print(line(measured))
    if took_s is not None:
        print(f"{suite} took {took_s:.0f} s")
    return path


def load(folder: Path = RESULTS) -> list[Run]:
    """Return what every suite has stored last in a folder."""
    return [_run(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def committed(revision: str) -> list[Run]:
    """Return what every suite had stored at a revision of git."""
    folder = str(RESULTS.relative_to(ROOT))
    names = _git("ls-tree", "--name-only", revision, f"{folder}/").split()
    return [_run(json.loads(_git("show", f"{revision}:{name}"))) for name in names]


def runs(source: str) -> list[Run]:
    """Return the results in a folder, or at a revision of git where there is no such folder."""
    return load(Path(source)) if Path(source).is_dir() else committed(source)


def _run(raw: Mapping[str, Any]) -> Run:
    return Run(
        raw["suite"],
        raw["date"],
        machine.Machine(**raw["on"]),
        raw["calibrators"],
        tuple(Figure(**fields) for fields in raw["figures"]),
        raw.get("took_s"),
    )


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def line(measured: Figure) -> str:
    """Return a figure for people."""
    beside = (
        ""
        if measured.reference is None
        else f"  reference {measured.reference} ratio {measured.ratio}"
    )
    amount = f"{measured.ours:10} {measured.unit}"
    return f"{measured.name:48} {amount}{beside}  ({measured.spread})  {measured.says}"
