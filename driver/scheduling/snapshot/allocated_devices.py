"""Allocated devices by claim, and the counters that they leave. Pure.

An allocation that is being written replaces the cached one of its claim. One that kube-scheduler is
expected to make counts until it is made, as long as the pod's own allocation stands.
"""

from collections.abc import Iterator, Mapping, Sequence
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
        self._expected: dict[ids.Key, claims.Allocation] = {}
        self._dependents: dict[ids.Key, tuple[ids.Key, ...]] = {}
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
        previous = self._counted(key)
        if allocation is None:
            self._cached.pop(key, None)
        else:
            self._cached[key] = allocation
            self._expected.pop(key, None)
        changed, dropped = self._update_holders(key, previous), self._drop_dependents(key)
        return [*changed, *dropped] if dropped else changed

    def begin_write(self, key: ids.Key, allocation: claims.Allocation) -> Sequence[claims.DeviceId]:
        """Count an allocation that is being written."""
        previous = self._counted(key)
        self._in_flight[key] = allocation
        return self._update_holders(key, previous)

    def end_write(self, key: ids.Key) -> Sequence[claims.DeviceId]:
        """Count the cached allocation again: the write ended."""
        previous = self._counted(key)
        self._in_flight.pop(key, None)
        changed, dropped = self._update_holders(key, previous), self._drop_dependents(key)
        return [*changed, *dropped] if dropped else changed

    def expect(
        self, allocations: Mapping[ids.Key, claims.Allocation], claim: ids.Key
    ) -> Sequence[claims.DeviceId]:
        """Count allocations that kube-scheduler will make, while `claim` is allocated."""
        devices: list[claims.DeviceId] = []
        self._dependents[claim] = tuple(allocations)
        for key, allocation in allocations.items():
            previous = self._counted(key)
            if key not in self._cached:
                self._expected[key] = allocation
            devices += self._update_holders(key, previous)
        return devices

    def allocation(self, key: ids.Key) -> claims.Allocation | None:
        """Return the current allocation of a claim."""
        return self._in_flight.get(key) or self._cached.get(key)

    def _counted(self, key: ids.Key) -> claims.Allocation | None:
        """Return the allocation of a claim that counts: the current one, or the expected one."""
        return self.allocation(key) or self._expected.get(key)

    def _drop_dependents(self, key: ids.Key) -> Sequence[claims.DeviceId]:
        """Expect nothing more of a pod whose own claim has no allocation."""
        if key not in self._dependents or self.allocation(key) is not None:
            return ()
        devices: list[claims.DeviceId] = []
        for dependent in self._dependents.pop(key):
            previous = self._counted(dependent)
            self._expected.pop(dependent, None)
            devices += self._update_holders(dependent, previous)
        return devices

    def _update_holders(
        self, key: ids.Key, previous: claims.Allocation | None
    ) -> Sequence[claims.DeviceId]:
        current = self._counted(key)
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
                self._release(device)
        results = [*_consuming_results(current)]
        if current is not None:
            for result in results:
                device = result.device
                self._by_pool.setdefault((device.driver, device.pool), set()).add(device.device)
                holders = (*self.holders(device), snapshot.Holder(key, result, current))
                self._holders[device] = tuple(sorted(holders, key=lambda entry: entry.claim))
        return [*released, *(entry.device for entry in results)]

    def _release(self, device: claims.DeviceId) -> None:
        """Remove a device from those of its pool; a claim may have several shares of it."""
        in_pool = self._by_pool.get((device.driver, device.pool))
        if in_pool is not None:
            in_pool.discard(device.device)
            if not in_pool:
                del self._by_pool[device.driver, device.pool]

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
