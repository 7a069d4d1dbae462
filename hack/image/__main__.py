"""`python -m hack.image`."""

from pathlib import Path
from typing import Annotated

import typer

from hack.image import build

app = typer.Typer(help=__doc__, add_completion=False)


@app.command()
def make(
    out: Annotated[Path, typer.Argument(help="where the OCI archive is written")],
    name: Annotated[str, typer.Option(help="the image's name, as pods write it")] = "ration:dev",
) -> None:
    """Make the driver's image without Docker, of this machine's Python and the locked wheels."""
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{out}  {name}  {build.write(out, name)}")


if __name__ == "__main__":
    app()
