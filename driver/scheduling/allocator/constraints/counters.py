"""Devices, counters and capacities that a partial solution uses of a node. Pure.

Every `try_allocate` that succeeds can be released; then the tracker is as before.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol

from driver.resources.dra import pools as dra_pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import compatibility_groups
from driver.scheduling.snapshot import snapshot

_Draws = tuple[tuple[dra_pools.Counter, int], ...]


class _User(NamedTuple):
    """Claim of the solution with a device; `charges`: what the device draws is charged to it."""

    claim: int
    admin: bool
    charges: bool


class RemainingCounters(compatibility_groups.UsedDevices, Protocol):
    """Source of what is left of pools: a snapshot, or values frozen from one."""

    def remaining_counters(self, pool: dra_pools.Pool) -> snapshot.CounterAmounts:
        """Return the remaining counters of a pool (KEP-4815)."""
        ...


class CounterTracker:
    """Tracker for one node; indexes are those of its devices."""

    def __init__(self, source: RemainingCounters, devices: Sequence[candidates.NodeDevice]) -> None:
        self._source = source
        self._devices = devices
        self._users: dict[int, list[_User]] = {}
        self._draws: dict[int, _Draws] = {}
        self._consumed: dict[int, dict[dra_pools.Counter, int]] = {}
        self._remaining: dict[int, snapshot.CounterAmounts] = {}
        self._amounts: dict[tuple[int, str], int] = {}
        self._groups = compatibility_groups.CompatibilityGroups(source)

    def remaining(self, index: int) -> snapshot.CounterAmounts:
        """Return what others leave of the counters of a device's pool."""
        pool = self._devices[index].pool
        amounts = self._remaining.get(id(pool))
        if amounts is None:
            amounts = self._remaining[id(pool)] = self._source.remaining_counters(pool)
            self._consumed[id(pool)] = {}
        return amounts

    def all_remaining(self) -> Iterator[snapshot.CounterAmounts]:
        """Yield what others leave of the counters of each pool that a device draws on."""
        pools = {
            id(device.pool): index
            for index, device in enumerate(self._devices)
            if device.device.consumes
        }
        return (self.remaining(index) for index in pools.values())

    def consumed(self) -> Iterator[tuple[dra_pools.Counter, int]]:
        """Yield what the solution draws on counters so far."""
        return (item for drawn in self._consumed.values() for item in drawn.items())

    def is_used(self, index: int) -> bool:
        """Return whether the solution has a device, or a share of it."""
        return bool(self._users.get(index))

    def can_allocate(self, index: int, options: candidates.RequestCandidates, claim: int) -> bool:
        """Return whether a device could be allocated now, as far as it alone is concerned.

        Admin access takes nothing, and is given beside other claims.
        """
        admin = options.subrequest.request.admin_access
        users = self._users.get(index)
        if (
            users
            and not self._devices[index].device.allow_multiple
            and any(user.claim == claim or not (user.admin or admin) for user in users)
        ):
            return False
        return admin or (
            self._has_counters(index)
            and self.admits_groups(index)
            and self._has_capacity(index, options)
        )

    def admits_groups(self, index: int) -> bool:
        """Return whether the device's compatibility groups allow it now (KEP-5963)."""
        device = self._devices[index]
        return (
            not device.pool.has_compatibility_groups
            or self._is_charged(index)
            or self._groups.admits(device.pool, device.device)
        )

    def group_signature(self, index: int) -> Hashable:
        """Return all that compatibility groups distinguish a device by."""
        device = self._devices[index]
        if not device.pool.has_compatibility_groups:
            return ()
        return tuple(self._groups.signature(device.pool, use) for use in device.device.consumes)

    def try_allocate(self, index: int, options: candidates.RequestCandidates, claim: int) -> bool:
        """Allocate a device, or a share of it, to a claim; return False if it cannot be."""
        if not self.can_allocate(index, options, claim):
            return False
        admin = options.subrequest.request.admin_access
        user = _User(claim, admin, charges=not admin and not self._is_charged(index))
        self._users.setdefault(index, []).append(user)
        self._add(index, options, 1, user)
        return True

    def release(self, index: int, options: candidates.RequestCandidates) -> None:
        """Undo the last allocation of the device."""
        self._add(index, options, -1, self._users[index].pop())

    def _add(
        self, index: int, options: candidates.RequestCandidates, sign: int, user: _User
    ) -> None:
        if user.admin:
            return
        for name, amount in options.consumption.get(index, {}).items():
            key = (index, name)
            self._amounts[key] = self._amounts.get(key, 0) + sign * amount.nanos
        if not user.charges:
            return
        device = self._devices[index]
        if device.pool.has_compatibility_groups:
            change = self._groups.add if sign > 0 else self._groups.remove
            change(device.pool, device.device)
        draws = self._device_draws(index)
        if draws:
            drawn = self._consumed[id(device.pool)]
            for counter, amount_drawn in draws:
                drawn[counter] = drawn.get(counter, 0) + sign * amount_drawn

    def _is_charged(self, index: int) -> bool:
        """Return whether a shared device's counters are charged, by others or the solution."""
        device = self._devices[index]
        if not device.device.allow_multiple:
            return False
        return any(not user.admin for user in self._users.get(index, ())) or any(
            holder.result.share_id for holder in device.holders
        )

    def _device_draws(self, index: int) -> _Draws:
        draws = self._draws.get(index)
        if draws is None:
            draws = self._draws[index] = tuple(dra_pools.counter_draws(self._devices[index].device))
            if draws:
                self.remaining(index)
        return draws

    def _has_counters(self, index: int) -> bool:
        draws = self._device_draws(index)
        if not draws or self._is_charged(index):
            return True
        key = id(self._devices[index].pool)
        left, drawn = self._remaining[key], self._consumed[key]
        for counter, amount in draws:
            if left.get(counter, 0) - drawn.get(counter, 0) < amount:
                return False
        # One overdrawn counter excludes every device of the pool that draws on any, as in the
        # reference (#140802): the cause is unknown.
        return min(left.values()) >= 0

    def _has_capacity(self, index: int, options: candidates.RequestCandidates) -> bool:
        device = self._devices[index]
        for name, amount in options.consumption.get(index, {}).items():
            taken = candidates.held_capacity(device, name) + self._amounts.get((index, name), 0)
            if taken + amount.nanos > device.device.capacity[name].value.nanos:
                return False
        return True
