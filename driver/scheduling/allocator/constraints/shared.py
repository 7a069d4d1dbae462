"""Base of constraints whose entries are shared by the subrequests that may meet."""

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator.sharing_rules import device_config

Entry = TypeVar("Entry")


class SharedConstraint(abc.ABC, Generic[Entry]):
    """Constraint (`base.Constraint`) without `entry`, `signature`, `accepts` and `reason`.

    `entries` are shared by the subrequests; entries from before the search stay.
    """

    def __init__(
        self,
        claim: int,
        subrequest: allocator_requests.SubRequest,
        devices: Sequence[candidates.NodeDevice],
        configs: device_config.DeviceConfigs,
        entries: list[Entry],
    ) -> None:
        self._claim = claim
        self._subrequest = subrequest
        self._devices = devices
        self._configs = configs
        self._entries = entries
        self._initial = len(entries)

    def covers(self, claim: int, subrequest: str) -> bool:
        """Return whether it applies to this subrequest of this claim."""
        return (claim, subrequest) == (self._claim, self._subrequest.name)

    @abc.abstractmethod
    def entry(self, index: int) -> Entry:
        """Return the entry that a device adds."""

    def add(self, index: int) -> None:
        """Add a device that is accepted."""
        self._entries.append(self.entry(index))

    def remove_last(self) -> None:
        """Remove the device added last."""
        self._entries.pop()

    def clear(self) -> None:
        """Remove all devices."""
        del self._entries[self._initial :]
