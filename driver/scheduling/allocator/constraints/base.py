"""Constraints between the devices of one solution; those of the API are one kind."""

from collections.abc import Hashable
from typing import Protocol

from driver import reasons


class Constraint(Protocol):
    """Checks each device before it is added; added devices can be removed again."""

    @property
    def reason(self) -> reasons.Reason:
        """Reason for a rejected device."""
        ...

    def covers(self, claim: int, subrequest: str) -> bool:
        """Return whether it applies to a claim's subrequest (`main`, `main/sub`)."""
        ...

    def accepts(self, index: int) -> bool:
        """Return whether a device may be added."""
        ...

    def add(self, index: int) -> None:
        """Add a device that is accepted."""
        ...

    def remove_last(self) -> None:
        """Remove the device added last."""
        ...

    def clear(self) -> None:
        """Remove all devices."""
        ...

    def signature(self, index: int) -> Hashable:
        """Return all that it distinguishes devices by."""
        ...
