"""Output of commands: a table for people, JSON or YAML for programs."""

import enum
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
import yaml

from driver.cli import columns

_DRAWN = frozenset({"COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables with which a table in a pipe is drawn as in a terminal."""


class Format(enum.StrEnum):
    """Values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def is_for_people(self) -> bool:
        """Return whether a table is printed, not a document."""
        return self in {Format.TABLE, Format.WIDE}


Output = Annotated[
    Format, typer.Option("--output", "-o", help="table, wide (more columns), json or yaml")
]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `wide` ones are shown with `-o wide` only; `blank` is shown for an empty cell.

    `styles` colours cells by their text (`{"wrong": "red"}`, as rich names styles), and only in a
    terminal.
    """

    title: str
    wide: bool = False
    styles: Mapping[str, str] = field(default_factory=dict)
    blank: str = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, each with one text a column; `empty` is said in place of a table without rows."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]
    empty: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns: {row}")


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a command: the `document` of JSON and YAML, and tables and lines for people."""

    document: object
    parts: tuple[Table | str, ...]


def show_answer(answer: Answer, output: Format) -> None:
    """Print it in the format that was asked for."""
    if not output.is_for_people:
        show_document(answer.document, output)
        return
    for part in answer.parts:
        if isinstance(part, str):
            print(part)
        else:
            show_table(part, wide=output is Format.WIDE)


def show_table(table: Table, *, wide: bool) -> None:
    """Print a table: in a terminal cells wrap at its width, in a pipe a row is a line.

    A pipe of which $COLUMNS tells the width is taken for a terminal without colours.
    """
    if not table.rows or not (sys.stdout.isatty() or _DRAWN & os.environ.keys()):
        print(text_of(table, wide=wide), end="")
        return
    # rich is loaded only where a table is drawn.
    import rich.console  # noqa: PLC0415
    import rich.table  # noqa: PLC0415
    import rich.text  # noqa: PLC0415

    console = rich.console.Console(highlight=False)
    shown = [index for index, column in enumerate(table.columns) if wide or not column.wide]
    drawn = rich.table.Table(*(table.columns[index].title for index in shown), box=None)
    for row in table.rows:
        cells = ((row[index], table.columns[index]) for index in shown)
        drawn.add_row(*(rich.text.Text(t or c.blank, c.styles.get(t, "")) for t, c in cells))
    console.print(drawn)


def text_of(table: Table, *, wide: bool) -> str:
    """A table as plain text: columns aligned, a row a line whatever its length, no colour."""
    if not table.rows:
        return f"{table.empty}\n" if table.empty else ""
    shown = [index for index, column in enumerate(table.columns) if wide or not column.wide]
    lines = [[table.columns[index].title for index in shown]]
    lines += [
        [" ".join(row[index].split()) or table.columns[index].blank for index in shown]
        for row in table.rows
    ]
    return columns.align(lines)


def show_rows(rows: Sequence[Mapping[str, str]], output: Format) -> None:
    """Print rows that share their keys: the keys are the columns."""
    columns = tuple(Column(key.upper(), blank="") for key in (rows[0] if rows else {}))
    table = Table(columns, [tuple(row.values()) for row in rows])
    show_answer(Answer(list(rows), (table,)), output)


def show_document(document: object, output: Format) -> None:
    """Print what programs read."""
    if output is Format.YAML:
        print(yaml.safe_dump(document, sort_keys=False), end="")
    else:
        print(json.dumps(document, indent=2))
