"""What one way of one claim brings into a pact; ways that may meet share what is given."""

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator.sharing_rules import device_config

Entry = TypeVar("Entry")


class SharedConstraint(abc.ABC, Generic[Entry]):
    """A pact (`pacts.Pact`) but for `brings`, `look`, `accepts` and `reason`.

    `given` is common to the sides of a pact; what stands in it before the search stays.
    """

    def __init__(
        self,
        claim: int,
        way: allocator_requests.SubRequest,
        spots: Sequence[candidates.NodeDevice],
        found: device_config.DeviceConfigs,
        given: list[Entry],
    ) -> None:
        self._claim = claim
        self._subrequest = way
        self._devices = spots
        self._configs = found
        self._entries = given
        self._initial = len(given)

    def covers(self, claim: int, way: str) -> bool:
        """Whether it is this way of this claim."""
        return (claim, way) == (self._claim, self._subrequest.name)

    @abc.abstractmethod
    def entry(self, place: int) -> Entry:
        """What taking a device adds to what is given."""

    def add(self, place: int) -> None:
        """Add a device that is accepted."""
        self._entries.append(self.entry(place))

    def remove_last(self) -> None:
        """Take the last device back."""
        self._entries.pop()

    def clear(self) -> None:
        """Take all devices back."""
        del self._entries[self._initial :]
