"""Devices of equivalent nodes, and their candidates: found once for idle devices. Pure.

Of equivalent nodes an idle device is a candidate on all or on none, for the same reason. So on each
node only the devices in use are checked again.
"""

import itertools
from collections.abc import (
    Hashable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
    ValuesView,
)
from typing import overload

from driver import reasons
from driver.resources.dra import claims, pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.snapshot import snapshot

_MAX_USES = 2048
"""Cached outcomes of devices in use, per subrequest."""


class EquivalentDevices(Sequence[candidates.NodeDevice]):
    """Devices of a node that reaches all of its pools, in order; each is created when it is read.

    `holders` and `uses` are by index, of the devices in use: who has them, and all that matters of
    it to others.
    """

    def __init__(
        self,
        shares: Sequence[pools.NodePool],
        holders: Mapping[int, Sequence[snapshot.Holder]],
        uses: Mapping[int, Hashable],
    ) -> None:
        self._shares = shares
        self._holders = holders
        self.uses = uses
        self._created: dict[int, candidates.NodeDevice] = {}
        self._size = sum(share.pool.size for share in shares)

    def idle(self) -> "EquivalentDevices":
        """Return the devices with none of them in use."""
        return EquivalentDevices(self._shares, {}, {})

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
                        self._holders.get(index, ()),
                    )
                position -= len(devices)
        raise IndexError(index)


def devices_in_use(
    view: snapshot.Snapshot,
    shares: Sequence[pools.NodePool],
    signature: node_signature.DeviceSignature,
) -> EquivalentDevices:
    """Return the devices of a node with their current holders; `signature` is the node's."""
    holders: dict[int, Sequence[snapshot.Holder]] = {}
    uses: dict[int, Hashable] = {}
    start = 0
    for share, (_, used) in zip(shares, signature, strict=True):
        pool = share.pool
        indexes = pool.cached_for_equivalents(_device_indexes) if used else {}
        for use in used:
            name = node_signature.used_device(use)
            if name in indexes:
                index = start + indexes[name]
                holders[index] = view.holders(claims.DeviceId(pool.driver, pool.name, name))
                uses[index] = use
        start += pool.size
    return EquivalentDevices(shares, holders, uses)


def _device_indexes(pool: pools.Pool) -> Mapping[str, int]:
    devices = (device for resource_slice in pool.slices for device in resource_slice.devices)
    return {device.name: index for index, device in enumerate(devices)}


class Rejected(MutableMapping[int, reasons.Reason]):
    """Rejected devices of a node: `own` of those in use, and of the others those of an idle node.

    A node with MIG has hundreds of them, of which few differ from those of an idle node.
    """

    __slots__ = ("_idle", "_in_use", "_own")

    def __init__(
        self,
        idle: Mapping[int, reasons.Reason],
        in_use: Mapping[int, Hashable],
        own: dict[int, reasons.Reason],
    ) -> None:
        self._idle = idle
        self._in_use = in_use
        self._own = own

    def __getitem__(self, index: int) -> reasons.Reason:
        return (self._own if index in self._in_use else self._idle)[index]

    def __setitem__(self, index: int, reason: reasons.Reason) -> None:
        self._own[index] = reason

    def __delitem__(self, index: int) -> None:
        del self._own[index]

    def __iter__(self) -> Iterator[int]:
        return itertools.chain(
            (index for index in self._idle if index not in self._in_use), self._own
        )

    def __len__(self) -> int:
        return len(self._idle) - len(self._idle.keys() & self._in_use.keys()) + len(self._own)

    def values(self) -> ValuesView[reasons.Reason]:
        """Return the reasons; looked up one by one they would take ten times as long."""
        idle = {index: why for index, why in self._idle.items() if index not in self._in_use}
        return (idle | self._own).values()


class EquivalentCandidates:
    """Candidates of a subrequest on equivalent nodes: those of a node whose devices are idle.

    Beside it the outcome of each device that was met in use, by how it is used.
    """

    def __init__(self, idle: candidates.RequestCandidates) -> None:
        self._idle = idle
        self._in_use: dict[tuple[int, Hashable], candidates.RequestCandidates] = {}

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self._idle.rejected) + len(self._idle.indexes)

    def find(
        self, devices: EquivalentDevices, device_filter: candidates.DeviceFilter
    ) -> candidates.RequestCandidates:
        """Return the candidates of a node."""
        idle, own = self._idle, dict[int, reasons.Reason]()
        options = candidates.RequestCandidates(
            idle.subrequest,
            idle.by_need,
            [index for index in idle.indexes if index not in devices.uses],
            dict(idle.selector_errors),
            dict(idle.consumption),
            Rejected(idle.rejected, devices.uses, own),
            set(idle.unavailable),
            idle.error,
        )
        for index in devices.uses:
            options.selector_errors.pop(index, None)
            options.consumption.pop(index, None)
            options.unavailable.discard(index)
            outcome = self._device_in_use(devices, index, device_filter)
            options.indexes += outcome.indexes
            options.selector_errors |= outcome.selector_errors
            options.consumption |= outcome.consumption
            own |= outcome.rejected
            options.unavailable |= outcome.unavailable
        options.indexes.sort()
        return options

    def _device_in_use(
        self, devices: EquivalentDevices, index: int, device_filter: candidates.DeviceFilter
    ) -> candidates.RequestCandidates:
        """Return the candidates with a device in use alone."""
        key = index, devices.uses[index]
        outcome = self._in_use.get(key)
        if outcome is None:
            if len(self._in_use) >= _MAX_USES:
                self._in_use.clear()
            outcome = candidates.RequestCandidates(self._idle.subrequest, self._idle.by_need)
            candidates.add_device(outcome, index, devices[index], device_filter)
            self._in_use[key] = outcome
        return outcome
