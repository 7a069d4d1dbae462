"""The command line as typer runs it: a command's module is imported when it is called."""

import importlib
from typing import Any

import typer
import typer.core
import typer.main

from driver.cli import catalog, front, renamed


class LazyGroup(typer.core.TyperGroup):
    """The group of all commands of `catalog`."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - typer's own
        """Their names, in order."""
        return sorted(catalog.COMMANDS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as above
        """Parse the command line. Refuses options by their former names."""
        refusal = renamed.refusal(args)
        if refusal:
            ctx.fail(refusal)
        return list(super().parse_args(ctx, args))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - as above
        """A command, loaded now; None where there is none of the name."""
        if cmd_name in catalog.COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name, catalog.COMMANDS[cmd_name])
        return self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as above
        """Write the page that `front` prints: it takes no command's module."""
        formatter.write(front.help_page())

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401 - as above
        """Names of commands that begin so, with their summaries; options after a dash."""
        if incomplete.startswith("-"):
            return [*super(typer.core.TyperGroup, self).shell_complete(ctx, incomplete)]
        return [
            # typer's own click, which it exports nowhere.
            typer.core.CompletionItem(name, help=catalog.COMMANDS[name].summary)  # type: ignore[attr-defined]
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]


app = typer.Typer(
    name="ration",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    # Help is plain text: as quick to print as it is short.
    rich_markup_mode=None,
)


@app.callback(help="Look at and explain GPUs shared by Ration.")
def _all() -> None:
    """Nothing is common to all commands."""


def _load(name: str, command: catalog.Command) -> Any:  # noqa: ANN401 - as above
    module = importlib.import_module(f"driver.cli.{command.module}")
    if not command.function:
        group = typer.main.get_group(module.app)
        group.help = command.summary
        return group
    function = getattr(module, command.function)
    if command.reads:
        from driver.cli.sources import options  # noqa: PLC0415 - of those that read alone

        function = options.command(function)
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_show_locals=False, rich_markup_mode=None
    )
    details = getattr(module, command.details)
    alone.command(name, help=f"{command.summary}\n\n{details}")(function)
    return typer.main.get_command(alone)
