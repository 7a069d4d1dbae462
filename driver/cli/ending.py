"""How commands end that read what people wrote, or the API server: one line, and an exit code."""

import contextlib
from collections.abc import Iterator

import typer

from driver import errors

BAD, UNREACHED = 2, 3


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Bad input ends the command with 2, an API server that refused or was not reached with 3."""
    try:
        yield
    except errors.ApiError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(UNREACHED) from error
    except errors.BadInput as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD) from error
