"""Tests of what is printed before any command is loaded."""

import pytest
import typer.core
import typer.main
from typer.testing import CliRunner

from driver.cli import __main__, catalog, front, lazy

RUN = CliRunner()
ROOT = typer.main.get_command(lazy.app)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["ration", *arguments])
    __main__.main()


def test_the_page_names_every_command_with_all_of_its_summary() -> None:
    page = " ".join(front.help_page().split())
    assert all(f" {name} {command.summary}" in page for name, command in catalog.COMMANDS.items())


def test_the_page_is_as_wide_as_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert 50 < max(map(len, front.help_page().splitlines())) <= 60


def test_the_page_of_a_wide_terminal_stays_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert 80 < max(map(len, front.help_page().splitlines())) <= 100


def test_the_page_has_the_options_that_typer_takes() -> None:
    page = " ".join(front.help_page().split())
    options = [param for param in ROOT.params if isinstance(param, typer.core.TyperOption)]
    messages = [f"{option.opts[0]} {option.help}" for option in options]
    assert len(messages) == 2
    assert all(message in page for message in messages)


def test_typer_prints_the_same_page() -> None:
    assert RUN.invoke(lazy.app, ["--help"]).output == front.help_page() + "\n"


def test_no_arguments_are_answered_by_the_page_and_a_code_of_usage() -> None:
    answer = RUN.invoke(lazy.app, [])
    assert (answer.exit_code, answer.output) == (2, front.help_page() + "\n")


def test_main_prints_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--help")
    assert capsys.readouterr().out == front.help_page() + "\n"


def test_main_prints_the_version_that_typer_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    run(monkeypatch, "version")
    assert capsys.readouterr().out == RUN.invoke(lazy.app, ["version"]).output


def test_names_of_commands_are_completed_with_their_summaries() -> None:
    group = lazy.LazyGroup()
    items = group.shell_complete(None, "wh")
    assert [(item.value, item.help) for item in items] == [("who", catalog.COMMANDS["who"].summary)]
    assert group.commands == {}
