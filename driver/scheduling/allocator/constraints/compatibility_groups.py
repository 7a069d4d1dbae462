"""Compatibility groups of devices that draw on one counter set (KEP-5963). Pure.

Devices that draw on one counter set are allocated together only if all of them have a group in
common, or none has a group.
"""

from collections.abc import Hashable
from collections.abc import Set as AbstractSet
from typing import Protocol

from driver.resources.dra import pools, slices

_UNGROUPED = frozenset({""})
"""Group of the devices that declare none; no declared group has an empty name."""


class UsedDevices(Protocol):
    """Source of the allocated devices of pools."""

    def used_devices(self, pool: pools.Pool) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        ...


class CompatibilityGroups:
    """Groups in use by counter set: those of allocated devices, and of a partial solution."""

    def __init__(self, source: UsedDevices) -> None:
        self._source = source
        self._allocated: dict[int, dict[str, frozenset[str]]] = {}
        self._chosen: dict[tuple[int, str], list[frozenset[str]]] = {}

    def admits(self, pool: pools.Pool, device: slices.Device) -> bool:
        """Return whether a device has a group in common with all that draw on its counter sets."""
        allocated = self._allocated_groups(pool)
        for use in device.consumes:
            chosen = self._chosen.get((id(pool), use.set), ())
            common = _groups(use).intersection(*chosen)
            if not common & allocated.get(use.set, common):
                return False
        return True

    def add(self, pool: pools.Pool, device: slices.Device) -> None:
        """Add a device that is admitted."""
        for use in device.consumes:
            self._chosen.setdefault((id(pool), use.set), []).append(_groups(use))

    def remove(self, pool: pools.Pool, device: slices.Device) -> None:
        """Remove a device that was added."""
        for use in device.consumes:
            self._chosen[id(pool), use.set].remove(_groups(use))

    def signature(self, pool: pools.Pool, use: slices.CounterUse) -> Hashable:
        """Return all that distinguishes a device's use of a counter set."""
        return use.groups, self._allocated_groups(pool).get(use.set)

    def _allocated_groups(self, pool: pools.Pool) -> dict[str, frozenset[str]]:
        """Return the groups that the allocated devices have in common, by counter set.

        A device that is in no slice counts for nothing, as with its counters.
        """
        common = self._allocated.get(id(pool))
        if common is None:
            common = self._allocated[id(pool)] = {}
            for name in self._source.used_devices(pool):
                device = pool.devices.get(name)
                for use in device.consumes if device else ():
                    common[use.set] = _groups(use) & common.get(use.set, _groups(use))
        return common


def _groups(use: slices.CounterUse) -> frozenset[str]:
    return use.groups or _UNGROUPED
