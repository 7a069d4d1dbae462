"""Equivalence of a node's devices: a device equivalent to a failed one fails too. Pure.

Devices that draw on common counters form a group (the faces of a GPU). Two groups are equivalent
when their members are, one by one: open to the same requests, of the same values for every
constraint, with the same counters and capacities left. Two devices are equivalent when they have
the same position in equivalent groups of which the solution uses nothing yet: exchanging the two
groups turns one solution into another.
"""

from collections.abc import Hashable, Sequence

from driver.resources.dra import pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import base as constraint_base
from driver.scheduling.allocator.constraints import counters


class DeviceEquivalence:
    """Equivalence classes, computed on first use."""

    def __init__(
        self,
        devices: Sequence[candidates.NodeDevice],
        request_options: Sequence[Sequence[candidates.RequestCandidates]],
        constraints: Sequence[constraint_base.Constraint],
        tracker: counters.CounterTracker,
    ) -> None:
        self._devices = devices
        self._candidates = [options for alternatives in request_options for options in alternatives]
        self._constraints = constraints
        self._tracker = tracker
        self._groups: list[tuple[int, ...]] = []
        self._kinds: list[Hashable] = []

    def equivalence_class(self, index: int) -> Hashable | None:
        """Return the class of a device; None if it is equivalent to no other now."""
        if not self._kinds:
            self._compute()
        if any(self._tracker.is_used(member) for member in self._groups[index]):
            return None
        return self._kinds[index]

    def _compute(self) -> None:
        groups = self._group_devices()
        self._groups = [()] * len(self._devices)
        self._kinds = [None] * len(self._devices)
        numbers: dict[Hashable, int] = {}
        open_to = [frozenset(options.indexes) for options in self._candidates]
        for group in groups:
            signature = tuple(self._device_signature(index, group, open_to) for index in group)
            number = numbers.setdefault(signature, len(numbers))
            for position, index in enumerate(group):
                self._groups[index] = group
                self._kinds[index] = number, position

    def _group_devices(self) -> list[tuple[int, ...]]:
        """Return indexes by group: devices that draw on one counter set are together."""
        group_of: dict[Hashable, list[int]] = {}
        for index, device in enumerate(self._devices):
            sets: list[Hashable] = [(id(device.pool), use.set) for use in device.device.consumes]
            merged = [index]
            for key in sets or [index]:
                merged = sorted({*merged, *group_of.get(key, ())})
            for member in merged:
                for use in self._devices[member].device.consumes:
                    group_of[id(self._devices[member].pool), use.set] = merged
            if not sets:
                group_of[index] = merged
        return sorted({tuple(group) for group in group_of.values()})

    def _device_signature(
        self, index: int, group: Sequence[int], open_to: Sequence[frozenset[int]]
    ) -> Hashable:
        device = self._devices[index]
        requested = tuple(
            (index in indexes, index in options.selector_errors, _consumption(options, index))
            for options, indexes in zip(self._candidates, open_to, strict=True)
        )
        values = tuple(constraint.signature(index) for constraint in self._constraints)
        remaining = tuple(
            (name, capacity.value.nanos - candidates.held_capacity(device, name))
            for name, capacity in device.device.capacity.items()
            if device.device.allow_multiple
        )
        return (
            requested,
            values,
            remaining,
            bool(device.holders),
            self._counter_signature(index, group),
            self._tracker.group_signature(index),
        )

    def _counter_signature(self, index: int, group: Sequence[int]) -> Hashable:
        """Return a device's draws and their remainder, counter sets numbered by first user."""
        device = self._devices[index]
        if not device.device.consumes:
            return ()
        first: dict[str, int] = {}
        for member in group:
            for use in self._devices[member].device.consumes:
                first.setdefault(use.set, len(first))
        left = self._tracker.remaining(index)
        return tuple(
            (first[counter_set], name, amount, left.get((counter_set, name)))
            for (counter_set, name), amount in pools.counter_draws(device.device)
        )


def _consumption(options: candidates.RequestCandidates, index: int) -> Hashable:
    return tuple(
        (name, amount.nanos) for name, amount in options.consumption.get(index, {}).items()
    )
