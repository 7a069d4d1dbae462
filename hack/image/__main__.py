"""`python -m hack.image`."""

from pathlib import Path
from typing import Annotated

import typer

from hack.cluster import errors
from hack.image import build, foreign

app = typer.Typer(help=__doc__, add_completion=False)


@app.command()
def make(
    out: Annotated[Path, typer.Argument(help="where the OCI archive is written")],
    name: Annotated[str, typer.Option(help="the image's name, as pods write it")] = "ration:dev",
    platform: Annotated[str, typer.Option(help="linux/amd64 or linux/arm64; this machine's")] = "",
) -> None:
    """Make the driver's image without Docker, of this machine's Python and the locked wheels.

    For another processor the Python is Debian's, of the same minor version.
    """
    architectures = {f"linux/{name}": name for name in foreign.PROCESSORS}
    if platform and platform not in architectures:
        raise typer.BadParameter(f"{platform}: expected {' or '.join(architectures)}")
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        digest = build.write(out, name, architecture=architectures.get(platform, ""))
    except errors.ClusterError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    print(f"{out}  {name}  {digest}")


if __name__ == "__main__":
    app()
