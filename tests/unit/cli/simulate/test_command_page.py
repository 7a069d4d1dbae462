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
    line = next(line for line in page.splitlines() if "--cluster examples/simulate" in line)
    printed = CliRunner().invoke(app, line.split()[1:]).output
    shown = "".join(f"    {line.rstrip()}".rstrip() + "\n" for line in printed.splitlines())
    assert shown in page
