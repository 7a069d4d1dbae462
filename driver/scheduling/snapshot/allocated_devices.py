"""Which claim has which device, and what that leaves of counters. Pure.

What a decision in flight gives counts in place of what the caches say of its claim.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from driver import ids
from driver.resources.dra import claims, pools
from driver.scheduling.snapshot import snapshot

_NONE: frozenset[str] = frozenset()


class AllocatedDevices:
    """Every change names the devices that it concerns."""

    def __init__(self) -> None:
        self._cached: dict[ids.Key, claims.Allocation] = {}
        self._in_flight: dict[ids.Key, claims.Allocation] = {}
        self._holders: dict[claims.DeviceId, tuple[snapshot.Holder, ...]] = {}
        self._by_pool: dict[snapshot.PoolKey, set[str]] = {}

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Who has a device, by claim."""
        return self._holders.get(device, ())

    def pool_devices(self, key: snapshot.PoolKey) -> AbstractSet[str]:
        """The devices of a pool that somebody has."""
        return self._by_pool.get(key, _NONE)

    def set_claim(
        self, key: ids.Key, allocation: claims.Allocation | None
    ) -> Sequence[claims.DeviceId]:
        """What the caches say of a claim now."""
        if allocation == self._cached.get(key):
            return ()
        before = self.allocation(key)
        if allocation is None:
            self._cached.pop(key, None)
        else:
            self._cached[key] = allocation
        return self._update_holders(key, before)

    def begin_write(self, key: ids.Key, allocation: claims.Allocation) -> Sequence[claims.DeviceId]:
        """An allocation of a claim is being written."""
        before = self.allocation(key)
        self._in_flight[key] = allocation
        return self._update_holders(key, before)

    def end_write(self, key: ids.Key) -> Sequence[claims.DeviceId]:
        """The writing ended."""
        before = self.allocation(key)
        self._in_flight.pop(key, None)
        return self._update_holders(key, before)

    def allocation(self, key: ids.Key) -> claims.Allocation | None:
        """What a claim has now."""
        return self._in_flight.get(key) or self._cached.get(key)

    def _update_holders(
        self, key: ids.Key, before: claims.Allocation | None
    ) -> Sequence[claims.DeviceId]:
        after = self.allocation(key)
        if before == after:  # what we wrote is what the caches then say
            return ()
        gone = [one.device for one in _consuming_results(before)]
        for device in gone:
            rest = tuple(one for one in self._holders.get(device, ()) if one.claim != key)
            if rest:
                self._holders[device] = rest
            else:
                self._holders.pop(device, None)
                self._by_pool[device.driver, device.pool].discard(device.device)
        come = [*_consuming_results(after)]
        if after is not None:
            for result in come:
                device = result.device
                self._by_pool.setdefault((device.driver, device.pool), set()).add(device.device)
                there = (*self.holders(device), snapshot.Holder(key, result, after))
                self._holders[device] = tuple(sorted(there, key=lambda one: one.claim))
        return [*gone, *(one.device for one in come)]

    def remaining_counters(self, of: pools.Pool) -> snapshot.CounterAmounts:
        """What devices in use leave of the counters of a pool, each charged once (KEP-4815).

        One that no slice shows charges nothing, as with kube-scheduler.
        """
        left = dict(of.counters)
        for name in self.pool_devices((of.driver, of.name)):
            device = of.devices.get(name)
            for key, amount in pools.drawn(device) if device else ():
                if key in left:
                    left[key] -= amount
        return left


def _consuming_results(allocation: claims.Allocation | None) -> Iterator[claims.Result]:
    if allocation is not None:
        yield from (one for one in allocation.results if not one.admin_access)
