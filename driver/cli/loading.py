"""Commands that are loaded when they are called: each costs but its own start."""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import typer
import typer.core
import typer.main


class Row(NamedTuple):
    """A command of `driver.cli`: its module, and what of it runs.

    `run` "": the module's `app`, a group. `help` names its text. `looks`: it takes the options of
    `reading.asking`.
    """

    module: str
    run: str = "show"
    help: str = "HELP"
    looks: bool = False


COMMANDS: Mapping[str, Row] = {
    "claims": Row("claims", looks=True),
    "cordon": Row("cordon", "cordon"),
    "defrag": Row("defrag"),
    "devices": Row("devices", looks=True),
    "doctor": Row("doctor", "examine"),
    "drain": Row("drain"),
    "dump": Row("dumping"),
    "explain": Row("explain", ""),
    "generate": Row("generate", ""),
    "idle": Row("idle", looks=True),
    "migrate": Row("migrate"),
    "must-gather": Row("must_gather"),
    "nodes": Row("nodes", looks=True),
    "queues": Row("queues", looks=True),
    "reasons": Row("reasons"),
    "simulate": Row("simulate"),
    "top": Row("top", looks=True),
    "uncordon": Row("cordon", "uncordon", "UNCORDON_HELP"),
    "validate": Row("validate"),
    "version": Row("version"),
    "who": Row("who", looks=True),
}


class Loading(typer.core.TyperGroup):
    """The group of all commands."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - typer's own
        """Their names, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - as above
        """A command, loaded now; None where there is none of the name."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name, COMMANDS[cmd_name])
        return self.commands.get(cmd_name)


def _load(name: str, row: Row) -> Any:  # noqa: ANN401 - as above
    module = importlib.import_module(f"driver.cli.{row.module}")
    if not row.run:
        return typer.main.get_group(module.app)
    run = getattr(module, row.run)
    if row.looks:
        from driver.cli.reading import asking  # noqa: PLC0415 - of those that look alone

        run = asking.command(run)
    alone = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
    alone.command(name, help=getattr(module, row.help))(run)
    return typer.main.get_command(alone)
