"""How commands print: a table for people, JSON or YAML for programs."""

import enum
import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
import yaml


class Format(enum.StrEnum):
    """Values of `-o`."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Output = Annotated[Format, typer.Option("--output", "-o", help="table, json or yaml")]


def show(rows: Sequence[Mapping[str, str]], output: Format) -> None:
    """Print rows that share their keys."""
    if output is not Format.TABLE:
        show_document(list(rows), output)
        return
    import rich.console  # noqa: PLC0415 - rich is loaded only where a table is drawn
    import rich.markup  # noqa: PLC0415
    import rich.table  # noqa: PLC0415

    table = rich.table.Table(*(key.upper() for key in (rows[0] if rows else {})), box=None)
    for row in rows:
        table.add_row(*map(rich.markup.escape, row.values()))
    rich.console.Console().print(table)


def show_document(document: object, output: Format) -> None:
    """Print what programs read."""
    if output is Format.YAML:
        print(yaml.safe_dump(document, sort_keys=False), end="")
    else:
        print(json.dumps(document, indent=2))
