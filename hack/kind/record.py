"""What is kept about a cluster that kind said is made."""

import contextlib

import pydantic

from hack.kind import layout


class Record(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`host` is the address of the Docker daemon that has it, empty for the client's default."""

    host: str
    node_image: str
    machine: str


def read(where: layout.Layout) -> Record | None:
    """The record of a cluster, if there is one that can be read."""
    with contextlib.suppress(OSError, pydantic.ValidationError):
        return Record.model_validate_json(where.created.read_text())
    return None


def write(where: layout.Layout, record: Record) -> None:
    """Keep a record, whole or not at all."""
    part = where.created.with_suffix(".part")
    part.write_text(record.model_dump_json(indent=2) + "\n")
    part.replace(where.created)
