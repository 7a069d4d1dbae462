"""Results of the cases: as a table, as markdown, as JSON; and as stored."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.blackbox import catalogue


class Outcome(StrEnum):
    """A case that was skipped has not passed."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one case. `detail` is why it failed or was skipped."""

    number: str
    origin: str
    title: str
    outcome: Outcome
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Report of one run: a subject on a line of Kubernetes."""

    subject: str
    kubernetes: str
    results: tuple[Result, ...]

    @property
    def good(self) -> bool:
        """Return whether no case failed."""
        return not any(one.outcome is Outcome.FAILED for one in self.results)

    def summary(self) -> str:
        """One line."""
        counts = Counter(one.outcome for one in self.results)
        told = ", ".join(f"{counts[one]} {one}" for one in Outcome)
        return f"{self.subject} on Kubernetes {self.kubernetes}: {told}"

    def text(self) -> str:
        """A table for a terminal."""
        rows = [("case", "result", "s", "what is shown"), *map(_row, self.results)]
        widths = [max(len(row[at]) for row in rows) for at in range(3)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True))
            for row in rows
        ]
        told = [_indented(one) for one in self.results if one.outcome is Outcome.FAILED]
        return "\n".join((*(line.rstrip() for line in lines), *told, self.summary()))

    def markdown(self) -> str:
        """A table for a page."""
        head = ("| Case | Upstream's name | Result | Seconds |", "|---|---|---|---|")
        rows = (
            f"| {one.number} | {one.origin} | {_told(one)} | {one.seconds:.0f} |"
            for one in self.results
        )
        return "\n".join((*head, *rows, "", self.summary()))

    def document(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "subject": self.subject,
            "kubernetes": self.kubernetes,
            "good": self.good,
            "cases": [dataclasses.asdict(one) for one in self.results],
        }


def _row(one: Result) -> tuple[str, str, str, str]:
    return one.number, str(one.outcome), f"{one.seconds:.0f}", one.title


def _told(one: Result) -> str:
    return f"skipped: {one.detail}" if one.outcome is Outcome.SKIPPED else str(one.outcome)


def _indented(one: Result) -> str:
    lines = one.detail.splitlines() or [""]
    return f"{one.number} {one.title}\n" + "\n".join(f"    {line}" for line in lines)


def read(
    lines: Iterable[str], cases: Sequence[catalogue.Case], *, whole: bool = True
) -> tuple[Result, ...]:
    """The results of cases as their processes noted them.

    Of a `whole` run a case that none noted has failed.
    """
    noted: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        one = json.loads(line)
        noted[one["number"]] = one
    found = []
    for case in cases:
        told = noted.get(case.number)
        if told is None and not whole:
            continue
        if told is None:
            told = {"outcome": "failed", "seconds": 0.0, "detail": "the case told no result"}
        outcome = Outcome(told["outcome"])
        found.append(
            Result(case.number, case.origin, case.title, outcome, told["seconds"], told["detail"])
        )
    return tuple(found)


def keep(path: Path, report: Report, commit: str) -> None:
    """Write the results into a file: by subject, by line of Kubernetes, by case.

    Cases that were not run this time keep what is known of them.
    """
    kept = json.loads(path.read_text()) if path.exists() else {}
    place = kept.setdefault(report.subject, {}).setdefault(report.kubernetes, {})
    for one in report.results:
        entry = {**dataclasses.asdict(one), "seconds": round(one.seconds, 1), "commit": commit}
        if one.outcome is Outcome.PASSED:
            del entry["detail"]
        place[one.number] = entry
    ordered = {
        subject: {line: _ordered(cases) for line, cases in sorted(lines.items())}
        for subject, lines in sorted(kept.items())
    }
    path.write_text(json.dumps(ordered, indent=2) + "\n")


def _ordered(cases: Mapping[str, Any]) -> dict[str, Any]:
    def order(number: str) -> tuple[int, ...]:
        return tuple(int(one) for one in number.removeprefix("BB-").split("."))

    return {number: cases[number] for number in sorted(cases, key=order)}
