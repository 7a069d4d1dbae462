"""Results as every suite writes them: benchmarks/results/<suite>.json."""

import dataclasses
import json
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `ratio` is ours to the reference's; `bar` what we want of it; `spread` min-max.

    `reference` None: nothing to measure beside it in this run.
    """

    name: str
    unit: str
    ours: float
    reference: float | None = None
    ratio: float | None = None
    bar: str = ""
    met: bool | None = None
    spread: str = ""
    seed: int = 0
    commit: str = ""


def figure(
    name: str,
    unit: str,
    ours: list[float],
    reference: list[float] | None = None,
    bar: str = "",
    *,
    seed: int = 0,
) -> Figure:
    """Medians of two samples and their ratio.

    A bar that begins `<= 3.0 ms` or `>= 250 /s` is of ours, one that begins `>= 10 x` of the ratio.
    """
    mine = statistics.median(ours)
    other = statistics.median(reference) if reference else None
    ratio = mine / other if other else None
    beside = f"; reference {_range(reference)}" if reference else ""
    return Figure(
        name,
        unit,
        round(mine, 3),
        None if other is None else round(other, 3),
        None if ratio is None else round(ratio, 2),
        bar,
        _is_met(mine, ratio, bar),
        spread=_range(ours) + beside,
        seed=seed,
        commit=commit(),
    )


def _range(sample: list[float]) -> str:
    return f"{min(sample):.3f}-{max(sample):.3f}, n={len(sample)}"


def _is_met(ours: float, ratio: float | None, bar: str) -> bool | None:
    limit = re.match(r"(<=|>=) ([0-9.]+)( x\b)?", bar)
    if limit is None:
        return None
    found = ratio if limit[3] else ours
    if found is None:
        return None
    return found <= float(limit[2]) if limit[1] == "<=" else found >= float(limit[2])


def percentile(sample: list[float], part: float) -> float:
    """The value below which `part` of the sample lies."""
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def commit() -> str:
    """What is checked out."""
    answer = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip()


def write(suite: str, figures: list[Figure]) -> Path:
    """Store a suite's figures and print them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{suite}.json"
    found = [dataclasses.asdict(one) for one in figures]
    path.write_text(json.dumps(found, indent=2) + "\n")
    for one in figures:
        print(line(one))
    return path


def line(one: Figure) -> str:
    """A figure for people."""
    beside = "" if one.reference is None else f"  reference {one.reference} ratio {one.ratio}"
    missed = "  MISSED" if one.met is False else ""
    return f"{one.name:48} {one.ours:10} {one.unit}{beside}  ({one.spread})  {one.bar}{missed}"
