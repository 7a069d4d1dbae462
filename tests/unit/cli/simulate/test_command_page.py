"""The pages show what the command prints for the files that they name."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from driver.cli.lazy import app

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", ["simulate", "placement-policies"])
def test_the_page_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "116")
    page = (ROOT / "docs" / "how-to" / f"{name}.md").read_text().replace(" \\\n", " ")
    line = next(one for one in page.splitlines() if "--cluster examples/simulate" in one)
    printed = CliRunner().invoke(app, line.split()[1:]).output
    shown = "".join(f"    {one.rstrip()}".rstrip() + "\n" for one in printed.splitlines())
    assert shown in page
