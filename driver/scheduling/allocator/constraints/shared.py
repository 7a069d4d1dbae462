"""What one way of one claim brings into a pact; ways that may meet share what is given."""

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator.sharing_rules import device_config

Given = TypeVar("Given")


class Side(abc.ABC, Generic[Given]):
    """A pact (`pacts.Pact`) but for `brings`, `look`, `accepts` and `reason`.

    `given` is common to the sides of a pact; what stands in it before the search stays.
    """

    def __init__(
        self,
        claim: int,
        way: allocator_requests.Way,
        spots: Sequence[candidates.Spot],
        found: device_config.Configs,
        given: list[Given],
    ) -> None:
        self._claim = claim
        self._way = way
        self._spots = spots
        self._configs = found
        self._given = given
        self._before = len(given)

    def covers(self, claim: int, way: str) -> bool:
        """Whether it is this way of this claim."""
        return (claim, way) == (self._claim, self._way.name)

    @abc.abstractmethod
    def brings(self, place: int) -> Given:
        """What taking a device adds to what is given."""

    def add(self, place: int) -> None:
        """Add a device that is accepted."""
        self._given.append(self.brings(place))

    def drop(self) -> None:
        """Take the last device back."""
        self._given.pop()

    def clear(self) -> None:
        """Take all devices back."""
        del self._given[self._before :]
