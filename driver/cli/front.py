"""`ration --help` and `ration version`, without the libraries of the commands."""

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from driver import names
from driver.cli import catalog, columns

_WIDEST = 100
_OPTIONS: Mapping[str, str] = {
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the "
    "installation.",
    "--help": "Show this message and exit.",
}


def help_page() -> str:
    """Text of `ration --help`, as wide as the terminal, at most 100 columns."""
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    summaries = {name: command.summary for name, command in catalog.COMMANDS.items()}
    lines = [
        "Usage: ration [OPTIONS] COMMAND [ARGS]...",
        "",
        "  Look at and explain GPUs shared by Ration.",
        "",
        "Options:",
        *_entries(_OPTIONS, width),
        "",
        "Commands:",
        *_entries(summaries, width),
    ]
    return "\n".join(lines)


def version() -> dict[str, str]:
    """Versions of Ration and Python, and the driver's name."""
    # Most of the time it takes to import this module; help does without.
    import importlib.metadata  # noqa: PLC0415

    return {
        "ration": importlib.metadata.version("ration"),
        "python": sys.version.partition(" ")[0],
        "driver": names.DRIVER,
    }


def _version_table() -> str:
    fields = version()
    return columns.align([[key.upper() for key in fields], [*fields.values()]]).rstrip("\n")


ANSWERS: Mapping[Sequence[str], Callable[[], str]] = {
    ("--help",): help_page,
    ("version",): _version_table,
}
"""Arguments that are answered here, each with what makes the text to print."""


def _entries(texts: Mapping[str, str], width: int) -> Iterator[str]:
    """Names, and beside them their texts, wrapped."""
    indent = 2 + max(map(len, texts)) + 2
    for name, text in texts.items():
        yield from textwrap.wrap(
            text, width, initial_indent=f"  {name}".ljust(indent), subsequent_indent=" " * indent
        )
