"""`ration`, also `kubectl ration`: one file a command, added here by one line."""

import typer

from driver.cli import (
    cordon,
    defrag,
    doctor,
    drain,
    dumping,
    generate,
    migrate,
    must_gather,
    reasons,
    simulate,
    validate,
    version,
)

app = typer.Typer(
    name="ration",
    help="Look at and explain GPUs shared by Ration.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command("cordon", help=cordon.HELP)(cordon.cordon)
app.command("defrag", help=defrag.HELP)(defrag.show)
app.command("doctor")(doctor.examine)
app.command("drain", help=drain.HELP)(drain.show)
app.command("dump", help=dumping.HELP)(dumping.show)
app.add_typer(generate.app, name="generate")
app.command("migrate", help=migrate.HELP)(migrate.show)
app.command("must-gather", help=must_gather.HELP)(must_gather.show)
app.command("reasons")(reasons.show)
app.command("simulate", help=simulate.HELP)(simulate.show)
app.command("uncordon", help=cordon.UNCORDON_HELP)(cordon.uncordon)
app.command("validate", help=validate.HELP)(validate.show)
app.command("version")(version.show)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
