"""`ration`, also `kubectl ration`: one file a command, added by one line of `loading`."""

import typer

from driver.cli import loading

app = typer.Typer(
    name="ration",
    cls=loading.Loading,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


@app.callback(help="Look at and explain GPUs shared by Ration.")
def _all() -> None:
    """Nothing is common to all commands."""


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
