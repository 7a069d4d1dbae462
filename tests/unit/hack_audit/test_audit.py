"""Tests of what PyPI says of a pin, and what it says nothing of."""

from pathlib import Path
from typing import Any

from hack import audit

PIN = ("urllib3", "2.7.0")
KNOWN: dict[str, Any] = {
    "id": "PYSEC-1",
    "aliases": ["CVE-1"],
    "summary": "reads too far",
    "fixed_in": ["2.7.1"],
}


def a_page(version: str, *existing: dict[str, Any]) -> dict[str, Any]:
    return {"info": {"version": version}, "vulnerabilities": list(existing)}


def test_a_vulnerability_of_a_release_is_reported_with_aliases_and_fixed_versions() -> None:
    verdict = audit.judge(PIN, a_page("2.7.0", KNOWN), None)
    assert list(audit.lines([verdict])) == [
        "urllib3 2.7.0: PYSEC-1, CVE-1: reads too far; mended in 2.7.1",
        "1 releases are pinned; of 1 something is known",
    ]


def test_without_a_release_page_the_project_page_counts_if_it_is_the_newest() -> None:
    assert audit.judge(PIN, None, a_page("2.7.0", KNOWN)).known != ()
    assert audit.judge(PIN, None, a_page("2.7.0")).known == ()


def test_an_older_release_is_reported_as_unknown() -> None:
    verdict = audit.judge(PIN, None, a_page("2.8.0", KNOWN))
    assert verdict.known is None
    assert "not told of, as they are not the newest: urllib3 2.7.0" in list(audit.lines([verdict]))


def test_every_pin_of_every_lock_is_asked_for_once(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text("urllib3==2.7.0 \\\n    --hash=sha256:0\nJinja2==3.1 ; x\n")
    (tmp_path / "b.lock").write_text("urllib3==2.7.0 \\\n    --hash=sha256:0\n")
    assert audit.pins(tmp_path) == [("jinja2", "3.1"), PIN]


def test_the_locks_of_this_project_are_read() -> None:
    assert {"grpcio", "kubernetes", "pydantic"} <= {name for name, _ in audit.pins()}
