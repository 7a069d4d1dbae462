"""Tests of what the commands say of themselves."""

import pytest
import typer.main

from driver.cli import lazy
from hack import cli_page

COMMANDS = dict(cli_page.commands(typer.main.get_command(lazy.app), "ration"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_every_option_a_meaning(name: str) -> None:
    command = COMMANDS[name]
    assert f"  {name}" in command.help
    assert [param.name for param in command.params if not param.help] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_its_exit_codes(name: str) -> None:
    assert "Exit codes: 0 " in COMMANDS[name].help


def test_the_page_has_them_all_with_their_choices() -> None:
    page = cli_page.page()
    assert all(f"\n## {name}\n" in page for name in COMMANDS)
    assert "| `--isolation` |  | How well a part by need is kept apart. One of `hardware`" in page
