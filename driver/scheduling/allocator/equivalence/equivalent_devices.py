"""Devices of equivalent nodes, and their candidates: found once for idle devices. Pure.

Of equivalent nodes an idle device is a candidate on all or on none, for the same reason. So on each
node only the devices in use are checked again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from driver.resources.dra import claims, pools
from driver.scheduling.allocator import candidates
from driver.scheduling.snapshot import snapshot

_Holders = Mapping[int, Sequence[snapshot.Holder]]


class EquivalentDevices(Sequence[candidates.NodeDevice]):
    """Devices of a node that reaches all of its pools, in order; each is created when it is read.

    `holders` are by index, of the devices in use.
    """

    def __init__(self, shares: Sequence[pools.NodePool], holders: _Holders) -> None:
        self._shares = shares
        self.holders = holders
        self._created: dict[int, candidates.NodeDevice] = {}
        self._size = sum(share.pool.size for share in shares)

    def idle(self) -> "EquivalentDevices":
        """Return the devices with none of them in use."""
        return EquivalentDevices(self._shares, {})

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> candidates.NodeDevice: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[candidates.NodeDevice]: ...

    def __getitem__(
        self, index: int | slice
    ) -> candidates.NodeDevice | Sequence[candidates.NodeDevice]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(self._size))]
        device = self._created.get(index)
        if device is None:
            device = self._created[index] = self._create(index)
        return device

    def __iter__(self) -> Iterator[candidates.NodeDevice]:
        return (self[index] for index in range(self._size))

    def _create(self, index: int) -> candidates.NodeDevice:
        position = index
        for share in self._shares:
            pool = share.pool
            for resource_slice, devices in share.slices:
                if position < len(devices):
                    device = devices[position]
                    return candidates.NodeDevice(
                        claims.DeviceId(pool.driver, pool.name, device.name),
                        device,
                        resource_slice,
                        pool,
                        share.problem,
                        self.holders.get(index, ()),
                    )
                position -= len(devices)
        raise IndexError(index)


def devices_in_use(view: snapshot.Snapshot, shares: Sequence[pools.NodePool]) -> EquivalentDevices:
    """Return the devices of a node that reaches all of some pools, with their current holders."""
    holders: dict[int, Sequence[snapshot.Holder]] = {}
    start = 0
    for share in shares:
        pool = share.pool
        used = view.used_devices(pool)
        indexes = pool.cached_for_equivalents(_device_indexes) if used else {}
        for name in used:
            if name in indexes:
                identity = claims.DeviceId(pool.driver, pool.name, name)
                holders[start + indexes[name]] = view.holders(identity)
        start += pool.size
    return EquivalentDevices(shares, holders)


def _device_indexes(pool: pools.Pool) -> Mapping[str, int]:
    devices = (device for resource_slice in pool.slices for device in resource_slice.devices)
    return {device.name: index for index, device in enumerate(devices)}


def find_candidates(
    idle: candidates.RequestCandidates,
    devices: EquivalentDevices,
    device_filter: candidates.DeviceFilter,
) -> candidates.RequestCandidates:
    """Return the candidates of a node, given those of an equivalent one whose devices are idle."""
    used = sorted(devices.holders)
    options = candidates.RequestCandidates(
        idle.subrequest,
        idle.by_need,
        [index for index in idle.indexes if index not in devices.holders],
        dict(idle.selector_errors),
        dict(idle.consumption),
        dict(idle.rejected),
        set(idle.unavailable),
    )
    for index in used:
        options.selector_errors.pop(index, None)
        options.consumption.pop(index, None)
        options.rejected.pop(index, None)
        options.unavailable.discard(index)
        candidates.add_device(options, index, devices[index], device_filter)
    options.indexes.sort()
    options.error = idle.error
    return options
