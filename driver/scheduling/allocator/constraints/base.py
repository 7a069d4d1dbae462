"""What ties devices of one solution together; constraints of the API are one kind of it."""

from collections.abc import Hashable
from typing import Protocol

from driver import reasons


class Constraint(Protocol):
    """Asked about each device before it is taken; what it has been given can be taken back."""

    @property
    def reason(self) -> reasons.Reason:
        """Why a device is not accepted."""
        ...

    def covers(self, claim: int, way: str) -> bool:
        """Whether it is on the devices of a way (`main`, `main/sub`) of a claim."""
        ...

    def accepts(self, place: int) -> bool:
        """Whether a device may be added."""
        ...

    def add(self, place: int) -> None:
        """Add a device that is accepted."""
        ...

    def remove_last(self) -> None:
        """Take the last device back."""
        ...

    def clear(self) -> None:
        """Take all devices back."""
        ...

    def signature(self, place: int) -> Hashable:
        """What it can tell devices apart by."""
        ...
