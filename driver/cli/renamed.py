"""Options of `ration` by their former names. They are refused, with the present name."""

from collections.abc import Mapping, Sequence
from typing import Final

OPTIONS: Final[Mapping[str, str]] = {
    "--home": "--ration-namespace",
    "--usual": "--workload-mix",
    "--wrong": "--problems-only",
}
"""Present names by former ones; no command has an option of a former name."""


def refusal(arguments: Sequence[str]) -> str:
    """Return why a command line is refused; "" if it holds no former name."""
    for argument in arguments:
        option = argument.partition("=")[0]
        if option in OPTIONS:
            return f"{option} has been renamed: use {OPTIONS[option]}"
    return ""
