"""`--watch`: what a command found, and again whenever that changes."""

import json
import sys
import threading
from collections.abc import Callable
from typing import Annotated

import typer

from driver import clock, errors
from driver.cli import errors as cli_errors
from driver.cli import output

EVERY_S = 2.0
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_PASSING = (errors.Unreachable, errors.ServerError, errors.TooManyRequests)

Watch = Annotated[
    bool,
    typer.Option(
        "--watch",
        "-w",
        help="Print again on every change until Ctrl-C; json: one document per line.",
    ),
]


def print_answers(
    ask: Callable[[], output.Answer],
    form: output.Format,
    *,
    watch: bool,
    time: clock.Clock | None = None,
) -> None:
    """Print the answer of `ask`; with `watch` again after each change, until Ctrl-C.

    After a first answer an unreachable server is reported and waited for. Raises ApiError, and
    what `ask` raises.
    """
    answer = ask()
    if not watch:
        output.show_answer(answer, form)
        return
    waits = time or clock.SystemClock()
    never = threading.Event()
    try:
        _draw(answer, form, first=True)
        while True:
            waits.wait(never, EVERY_S)
            result = _asked(ask)
            if result is not None and result != answer:
                answer = result
                _draw(answer, form, first=False)
    except KeyboardInterrupt:
        return


def _asked(ask: Callable[[], output.Answer]) -> output.Answer | None:
    try:
        return ask()
    except _PASSING as error:
        typer.echo(cli_errors.error_line(error), err=True)
        return None


def _draw(answer: output.Answer, form: output.Format, *, first: bool) -> None:
    if form is output.Format.JSON:
        print(json.dumps(answer.document, separators=(",", ":")), flush=True)
        return
    if form.is_for_people and sys.stdout.isatty():
        print(_CLEAR, end="")
    elif not first:
        print("---" if form is output.Format.YAML else "")
    output.show_answer(answer, form)
    sys.stdout.flush()
