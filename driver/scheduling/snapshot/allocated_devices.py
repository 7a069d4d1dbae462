"""Allocated devices by claim, and the counters that they leave. Pure.

An allocation that is being written replaces the cached one of its claim.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from driver import ids
from driver.resources.dra import claims, pools
from driver.scheduling.snapshot import snapshot

_NONE: frozenset[str] = frozenset()


class AllocatedDevices:
    """Index of allocations. Every change returns the devices that it concerns."""

    def __init__(self) -> None:
        self._cached: dict[ids.Key, claims.Allocation] = {}
        self._in_flight: dict[ids.Key, claims.Allocation] = {}
        self._holders: dict[claims.DeviceId, tuple[snapshot.Holder, ...]] = {}
        self._by_pool: dict[snapshot.PoolKey, set[str]] = {}

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Return the holders of a device, by claim."""
        return self._holders.get(device, ())

    def pool_devices(self, key: snapshot.PoolKey) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        return self._by_pool.get(key, _NONE)

    def set_claim(
        self, key: ids.Key, allocation: claims.Allocation | None
    ) -> Sequence[claims.DeviceId]:
        """Set the cached allocation of a claim."""
        if allocation == self._cached.get(key):
            return ()
        previous = self.allocation(key)
        if allocation is None:
            self._cached.pop(key, None)
        else:
            self._cached[key] = allocation
        return self._update_holders(key, previous)

    def begin_write(self, key: ids.Key, allocation: claims.Allocation) -> Sequence[claims.DeviceId]:
        """Count an allocation that is being written."""
        previous = self.allocation(key)
        self._in_flight[key] = allocation
        return self._update_holders(key, previous)

    def end_write(self, key: ids.Key) -> Sequence[claims.DeviceId]:
        """Count the cached allocation again: the write ended."""
        previous = self.allocation(key)
        self._in_flight.pop(key, None)
        return self._update_holders(key, previous)

    def allocation(self, key: ids.Key) -> claims.Allocation | None:
        """Return the current allocation of a claim."""
        return self._in_flight.get(key) or self._cached.get(key)

    def _update_holders(
        self, key: ids.Key, previous: claims.Allocation | None
    ) -> Sequence[claims.DeviceId]:
        current = self.allocation(key)
        if previous == current:  # the caches confirm what we wrote
            return ()
        released = [entry.device for entry in _consuming_results(previous)]
        for device in released:
            remaining = tuple(
                entry for entry in self._holders.get(device, ()) if entry.claim != key
            )
            if remaining:
                self._holders[device] = remaining
            else:
                self._holders.pop(device, None)
                self._by_pool[device.driver, device.pool].discard(device.device)
        results = [*_consuming_results(current)]
        if current is not None:
            for result in results:
                device = result.device
                self._by_pool.setdefault((device.driver, device.pool), set()).add(device.device)
                holders = (*self.holders(device), snapshot.Holder(key, result, current))
                self._holders[device] = tuple(sorted(holders, key=lambda entry: entry.claim))
        return [*released, *(entry.device for entry in results)]

    def remaining_counters(self, pool: pools.Pool) -> snapshot.CounterAmounts:
        """Return what allocated devices leave of a pool's counters, each charged once (KEP-4815).

        A device that is in no slice charges nothing, as with kube-scheduler.
        """
        left = dict(pool.counters)
        for name in self.pool_devices((pool.driver, pool.name)):
            device = pool.devices.get(name)
            for key, amount in pools.counter_draws(device) if device else ():
                if key in left:
                    left[key] -= amount
        return left


def _consuming_results(allocation: claims.Allocation | None) -> Iterator[claims.Result]:
    if allocation is not None:
        yield from (result for result in allocation.results if not result.admin_access)
