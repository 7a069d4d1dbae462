"""The grammar of `nvidia-smi`'s command line: `-i 0`, `--id=0`, `-L`, `-cci` with or without."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from simulator.smi import refusal


class Takes(Enum):
    """What follows an option."""

    NOTHING = 0
    VALUE = 1
    PERHAPS = 2


@dataclass(frozen=True, slots=True)
class Option:
    """An option by the name it is asked for; `spellings` are what may be written."""

    name: str
    spellings: tuple[str, ...]
    takes: Takes = Takes.NOTHING


ID = Option("id", ("-i", "--id"), Takes.VALUE)


def parse(argv: Sequence[str], options: Sequence[Option]) -> dict[str, str]:
    """Each option given and its value ("" without one). Raises RefusedError."""
    known = {spelling: option for option in options for spelling in option.spellings}
    found: dict[str, str] = {}
    left = list(argv)
    while left:
        written, equals, value = left.pop(0).partition("=")
        option = known.get(written)
        if option is None or (equals and option.takes is Takes.NOTHING):
            raise refusal.usage(f'Option "{written}" is not recognized.')
        if not equals and _follows(option, left):
            value = left.pop(0)
        if option.takes is Takes.VALUE and not value:
            raise refusal.usage(f'Option "{written}" is missing its value.')
        found[option.name] = value
    return found


def _follows(option: Option, left: Sequence[str]) -> bool:
    """Whether the next word is the option's value."""
    if option.takes is Takes.PERHAPS:
        return bool(left) and not left[0].startswith("-")
    return option.takes is Takes.VALUE and bool(left)


def choice(option: str, value: str, values: Mapping[str, int]) -> int:
    """One of named or numbered values, in any case. Raises RefusedError."""
    numbers = {str(number): number for number in values.values()}
    chosen = values.get(value.upper(), numbers.get(value))
    if chosen is None:
        known = ", ".join(f"{number}={name}" for name, number in values.items())
        raise refusal.usage(f'"{value}" is not a value of {option}: {known}.')
    return chosen
