"""`ration reasons`: what the words in events mean."""

from typing import Annotated

import typer

from driver import reasons, remediation
from driver.cli import errors as cli_errors
from driver.cli import output as out

DETAILS = (
    "  ration reasons\n\n  ration reasons DeviceInUse\n\nExit codes: 0 shown; 2 no such reason."
)


def show(
    reason: Annotated[str, typer.Argument(help="reason, as in an event; default: all")] = "",
    output: out.Output = out.Format.TABLE,
) -> None:
    """Say what each reason in events and refusals means."""
    name = reasons.current_name(reason)
    result = [item for item in reasons.Reason if name in {"", item.value}]
    if not result:
        cli_errors.stop(f"no reason {reason!r}; `ration reasons` lists them all", cli_errors.BAD)
    rows = [
        {"reason": item.value, "meaning": item.meaning, "what to do": remediation.remedy(item)}
        for item in result
    ]
    out.show_rows(rows, output)
