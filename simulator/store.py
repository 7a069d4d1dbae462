"""A machine on disk: created once, its state written whole on every change."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pydantic

from simulator import layout, machine, profile


class MachineDirectoryError(Exception):
    """A directory that holds no machine, holds one already, or is in use."""


def create(base: Path, name: str, seed: str) -> machine.Machine:
    """A new machine in `base`, with its own copy of the profile."""
    at = layout.Layout(base)
    if at.identity.exists():
        raise MachineDirectoryError(f"{base} holds a machine already")
    text = profile.text_of(name)
    made = machine.Machine(profile.parse(name, text), seed)
    base.mkdir(parents=True, exist_ok=True)
    at.profile.write_text(text)
    save(base, made)
    _replace(at.identity, json.dumps({"version": 1, "machine": name, "seed": seed}) + "\n")
    return made


def load(base: Path) -> machine.Machine:
    """The machine of `base` in its last state."""
    at = layout.Layout(base)
    try:
        identity = json.loads(at.identity.read_text())
        text = at.profile.read_text()
        state = machine.STATE_FORMAT.validate_json(at.state.read_bytes(), extra="forbid")
    except FileNotFoundError as e:
        raise MachineDirectoryError(f"{base} holds no machine: {e.filename} is missing") from e
    except (json.JSONDecodeError, pydantic.ValidationError) as e:
        raise MachineDirectoryError(f"{base} holds a broken machine: {e}") from e
    return machine.Machine(profile.parse(identity["machine"], text), identity["seed"], state)


def save(base: Path, of: machine.Machine) -> None:
    """Write the state, all or nothing."""
    text = machine.STATE_FORMAT.dump_json(of.state, indent=1).decode() + "\n"
    _replace(layout.Layout(base).state, text)


@contextmanager
def locked(base: Path) -> Iterator[None]:
    """Hold the machine; MachineDirectoryError at once when another process does."""
    at = layout.Layout(base)
    if not at.identity.exists():
        raise MachineDirectoryError(f"{base} holds no machine")
    with at.lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise MachineDirectoryError(f"{base} is in use by another process") from e
        yield


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
