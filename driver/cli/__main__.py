"""`ration`, also `kubectl ration`: one file a command, added here by one line."""

import typer

from driver.cli import (
    claims,
    cordon,
    defrag,
    devices,
    doctor,
    drain,
    dumping,
    explain,
    generate,
    idle,
    migrate,
    must_gather,
    queues,
    reasons,
    simulate,
    top,
    validate,
    version,
    who,
)
from driver.cli.reading import asking

app = typer.Typer(
    name="ration",
    help="Look at and explain GPUs shared by Ration.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
_generate = typer.Typer(help=generate.GROUP_HELP, no_args_is_help=True)
_generate.command("claim", help=generate.HELP)(generate.claim)
app.command("claims", help=claims.HELP)(asking.command(claims.show))
app.command("cordon", help=cordon.HELP)(cordon.cordon)
app.command("defrag", help=defrag.HELP)(defrag.show)
app.command("devices", help=devices.HELP)(asking.command(devices.show))
app.command("doctor", help=doctor.HELP)(doctor.examine)
app.command("drain", help=drain.HELP)(drain.show)
app.command("dump", help=dumping.HELP)(dumping.show)
app.add_typer(explain.app, name="explain")
app.add_typer(_generate, name="generate")
app.command("idle", help=idle.HELP)(asking.command(idle.show))
app.command("migrate", help=migrate.HELP)(migrate.show)
app.command("must-gather", help=must_gather.HELP)(must_gather.show)
app.command("queues", help=queues.HELP)(asking.command(queues.show))
app.command("reasons", help=reasons.HELP)(reasons.show)
app.command("simulate", help=simulate.HELP)(simulate.show)
app.command("top", help=top.HELP)(asking.command(top.show))
app.command("uncordon", help=cordon.UNCORDON_HELP)(cordon.uncordon)
app.command("validate", help=validate.HELP)(validate.show)
app.command("version", help=version.HELP)(version.show)
app.command("who", help=who.HELP)(asking.command(who.show))


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
