"""Exit codes of commands, and error messages of one line with a remedy."""

import contextlib
import re
from collections.abc import Iterator
from typing import NoReturn

import typer

from driver import errors
from driver.cli import permissions

DONE, NO, BAD, UNREACHED = 0, 1, 2, 3
"""Done; the answer is no; bad input, usage or an unknown object; refused, or not reached."""
CONTROLLER = "Controller"
"""`ApiError.reason` of what the controller's own API answered, or did not."""
CODES = (
    "Exit codes: 0 done; 1 the answer is no; 2 bad input or an object that is not there; "
    "3 the API server refused or was not reached."
)
"""The line that `--help` of commands ends with which mean nothing more special."""

_RIGHT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_NOT_SERVED = ("the server could not find the requested resource", "404 page not found")


@contextlib.contextmanager
def exit_on_error() -> Iterator[None]:
    """Exit with 2 on bad input and unknown objects, with 3 when a server refuses."""
    try:
        yield
    except (errors.ApiError, errors.BadInput) as error:
        typer.echo(error_line(error), err=True)
        raise typer.Exit(exit_code(error)) from error


def stop(text: str, exit_code: int) -> NoReturn:
    """End the command with one line on standard error."""
    typer.echo(_one_line(text), err=True)
    raise typer.Exit(exit_code)


def exit_code(error: errors.ApiError | errors.BadInput) -> int:
    """The exit code of a command that ends by it."""
    unknown = isinstance(error, errors.NotFound) and not _is_not_served(error)
    return BAD if unknown or isinstance(error, errors.BadInput) else UNREACHED


def error_line(error: errors.ApiError | errors.BadInput) -> str:
    """Return the error and its remedy, on one line."""
    if isinstance(error, errors.ApiError) and error.reason == CONTROLLER:
        return _one_line(_of_controller(error))
    match error:
        case errors.Forbidden():
            text = _forbidden(error)
        case errors.Unauthorized():
            text = (
                f"the API server does not know you ({error.message}): log in again, or name "
                "another kubeconfig with --kubeconfig"
            )
        case errors.Unreachable():
            text = (
                f"the API server was not reached ({error.message}): is it up, and is it the "
                "kubeconfig that you mean (--kubeconfig)?"
            )
        case errors.NotFound() if _is_not_served(error):
            text = (
                "the API server does not serve what was asked: `ration doctor` says what is missing"
            )
        case errors.NotFound():
            text = f"{error.message}: look at the name, and the namespace (-n)"
        case _:
            text = str(error)
    return _one_line(text)


def _of_controller(error: errors.ApiError) -> str:
    if isinstance(error, errors.Unreachable):
        return (
            f"the controller was not reached ({error.message}): is it up? --source cluster does "
            "without it"
        )
    return f"the controller answers: {error.message}"


def _forbidden(error: errors.Forbidden) -> str:
    result = _RIGHT.search(error.message)
    if result is None:
        return str(error)
    right = permissions.Right(
        result["verb"], result["resource"], result["group"], result["namespace"] or ""
    )
    return f"you may not {right}: ask for the right ({right.question})"


def _is_not_served(error: errors.NotFound) -> bool:
    return any(text in error.message for text in _NOT_SERVED)


def _one_line(text: str) -> str:
    return " ".join(text.split())
