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
        return not any(result.outcome is Outcome.FAILED for result in self.results)

    def summary(self) -> str:
        """One line."""
        counts = Counter(result.outcome for result in self.results)
        joined = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)
        return f"{self.subject} on Kubernetes {self.kubernetes}: {joined}"

    def text(self) -> str:
        """A table for a terminal."""
        rows = [("case", "result", "s", "what is shown"), *map(_row, self.results)]
        widths = [max(len(row[index]) for row in rows) for index in range(3)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True))
            for row in rows
        ]
        indenteds = [
            _indented(result) for result in self.results if result.outcome is Outcome.FAILED
        ]
        return "\n".join((*(line.rstrip() for line in lines), *indenteds, self.summary()))

    def markdown(self) -> str:
        """A table for a page."""
        head = ("| Case | Upstream's name | Result | Seconds |", "|---|---|---|---|")
        rows = (
            f"| {result.number} | {result.origin} | {_told(result)} | {result.seconds:.0f} |"
            for result in self.results
        )
        return "\n".join((*head, *rows, "", self.summary()))

    def document(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "subject": self.subject,
            "kubernetes": self.kubernetes,
            "good": self.good,
            "cases": [dataclasses.asdict(result) for result in self.results],
        }


def _row(result: Result) -> tuple[str, str, str, str]:
    return result.number, str(result.outcome), f"{result.seconds:.0f}", result.title


def _told(result: Result) -> str:
    return f"skipped: {result.detail}" if result.outcome is Outcome.SKIPPED else str(result.outcome)


def _indented(result: Result) -> str:
    lines = result.detail.splitlines() or [""]
    return f"{result.number} {result.title}\n" + "\n".join(f"    {line}" for line in lines)


def read(
    lines: Iterable[str], cases: Sequence[catalogue.Case], *, whole: bool = True
) -> tuple[Result, ...]:
    """The results of cases as their processes noted them.

    Of a `whole` run a case that none noted has failed.
    """
    noted: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        document_value = json.loads(line)
        noted[document_value["number"]] = document_value
    results = []
    for case in cases:
        document = noted.get(case.number)
        if document is None and not whole:
            continue
        if document is None:
            document = {"outcome": "failed", "seconds": 0.0, "detail": "the case told no result"}
        outcome = Outcome(document["outcome"])
        results.append(
            Result(
                case.number,
                case.origin,
                case.title,
                outcome,
                document["seconds"],
                document["detail"],
            )
        )
    return tuple(results)


def keep(path: Path, report: Report, commit: str) -> None:
    """Write the results into a file: by subject, by line of Kubernetes, by case.

    Cases that were not run this time keep what is known of them.
    """
    document = json.loads(path.read_text()) if path.exists() else {}
    entry_value = document.setdefault(report.subject, {}).setdefault(report.kubernetes, {})
    for result in report.results:
        entry = {
            **dataclasses.asdict(result),
            "seconds": round(result.seconds, 1),
            "commit": commit,
        }
        if result.outcome is Outcome.PASSED:
            del entry["detail"]
        entry_value[result.number] = entry
    ordered = {
        subject: {line: _ordered(cases) for line, cases in sorted(lines.items())}
        for subject, lines in sorted(document.items())
    }
    path.write_text(json.dumps(ordered, indent=2) + "\n")


def _ordered(cases: Mapping[str, Any]) -> dict[str, Any]:
    def order(number: str) -> tuple[int, ...]:
        return tuple(int(word) for word in number.removeprefix("BB-").split("."))

    return {number: cases[number] for number in sorted(cases, key=order)}
