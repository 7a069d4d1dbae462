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
    name: str, unit: str, ours: list[float], reference: list[float] | None = None, bar: str = ""
) -> Figure:
    """Medians of two samples and their ratio; a bar that begins `<= 3.0` is met or not."""
    mine = statistics.median(ours)
    other = statistics.median(reference) if reference else None
    return Figure(
        name,
        unit,
        round(mine, 3),
        None if other is None else round(other, 3),
        None if not other else round(mine / other, 2),
        bar,
        _is_met(mine, bar),
        spread=f"{min(ours):.3f}-{max(ours):.3f}, n={len(ours)}",
        commit=_commit(),
    )


def _is_met(ours: float, bar: str) -> bool | None:
    limit = re.match(r"<= ([0-9.]+) ", bar)
    return None if limit is None else ours <= float(limit[1])


def percentile(sample: list[float], part: float) -> float:
    """The value below which `part` of the sample lies."""
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _commit() -> str:
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
        beside = "" if one.reference is None else f"  reference {one.reference} ratio {one.ratio}"
        missed = "  MISSED" if one.met is False else ""
        print(f"{one.name:48} {one.ours:10} {one.unit}{beside}  ({one.spread})  {one.bar}{missed}")
    return path
