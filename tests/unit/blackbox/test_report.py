"""Tests of the results of the cases, as reported and stored."""

import json
from pathlib import Path

from tests.blackbox import catalogue, report

CASES = tuple(
    catalogue.Case(number, f"e2e: {number}", f"title of {number}", (), "", Path("x"))
    for number in ("BB-1.1", "BB-1.2", "BB-1.10")
)
LINES = (
    json.dumps({"number": "BB-1.1", "outcome": "passed", "seconds": 3.21, "detail": ""}),
    json.dumps({"number": "BB-1.2", "outcome": "skipped", "seconds": 0, "detail": "does not"}),
)


def made() -> report.Report:
    return report.Report("small", "1.37", report.read(LINES, CASES))


def test_a_case_that_told_nothing_has_failed() -> None:
    outcomes = {result.number: result.outcome for result in made().results}
    assert outcomes["BB-1.10"] is report.Outcome.FAILED
    assert not made().good


def test_an_interrupted_run_reports_only_finished_cases() -> None:
    done = report.read(LINES, CASES, whole=False)
    assert [result.number for result in done] == ["BB-1.1", "BB-1.2"]


def test_a_skipped_case_has_not_passed() -> None:
    assert made().summary() == "small on Kubernetes 1.37: 1 passed, 1 failed, 1 skipped"
    assert "| BB-1.2 | e2e: BB-1.2 | skipped: does not | 0 |" in made().markdown()


def test_the_table_says_why_a_case_failed() -> None:
    text = made().text()
    assert "BB-1.1   passed   3  title of BB-1.1" in text
    assert "BB-1.10 title of BB-1.10\n    the case told no result" in text


def test_results_are_kept_by_subject_and_line_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    report.keep(path, made(), "abc")
    only = report.Report("small", "1.37", report.read(LINES[:1], CASES[:1]))
    report.keep(path, only, "def")
    report.keep(path, report.Report("small", "1.36", only.results), "def")
    document = json.loads(path.read_text())
    assert list(document["small"]) == ["1.36", "1.37"]
    assert list(document["small"]["1.37"]) == ["BB-1.1", "BB-1.2", "BB-1.10"]
    assert document["small"]["1.37"]["BB-1.1"]["commit"] == "def"
    assert document["small"]["1.37"]["BB-1.10"]["outcome"] == "failed"
