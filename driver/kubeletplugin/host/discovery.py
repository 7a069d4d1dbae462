"""The node's GPUs, as last read."""

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from driver import errors, ids
from driver.devices import mig, model
from driver.kubeletplugin import ports

T = TypeVar("T")
OwnInstances = Callable[[], frozenset[mig.InstanceRef]]
"""MIG instances that are or may be ours, by the node's records. Raises DeviceFault."""


def _no_instances() -> frozenset[mig.InstanceRef]:
    return frozenset()


class InventoryStore(Protocol):
    """Store of the inventory that outlives the process. Neither method raises."""

    def read(self) -> model.Inventory:
        """Return the GPUs known last, as GPUs that cannot be read now."""
        ...

    def write(self, inventory: model.Inventory) -> None:
        """Store the inventory."""
        ...


class NoInventoryStore:
    """Stores nothing."""

    def read(self) -> model.Inventory:
        """Return no GPU."""
        return model.Inventory()

    def write(self, inventory: model.Inventory) -> None:
        """Store nothing."""


class Discovery:
    """The inventory, read on request. Thread safe.

    Before the first read it is the content of `store`, none of it readable yet: a GPU that hangs
    as this process starts is known all the same. The store has the GPUs as last read; changes of
    ours are in the records. A GPU with a hung call counts as one that cannot
    be read, and affects no other.

    MIG instances at `own_instances` are marked as ours: a record exists before an instance is
    created and after it is destroyed, so the records are read before and after the instances.
    """

    def __init__(
        self,
        nvml: ports.Nvml,
        own_instances: OwnInstances = _no_instances,
        store: InventoryStore | None = None,
    ) -> None:
        self._nvml = nvml
        self._ours = own_instances
        self._store = store or NoInventoryStore()
        self._reading = threading.Lock()
        self._swapping = threading.Lock()
        self._inventory = self._store.read()
        nvml.set_gpus(self._inventory)
        self._refresh_counts: Counter[ids.GpuUuid] = Counter()
        self._doubts = 0
        self._stale = False

    def current(self) -> model.Inventory:
        """Return the inventory as last read."""
        return self._inventory

    def trusted(self) -> model.Inventory:
        """Return the inventory, re-read if the last read failed. Raises DeviceFault.

        Minors may have changed by the time a driver is back, so an earlier inventory must not be
        used to prepare. Of concurrent callers one reads; while others read, a good inventory stays
        good.
        """
        if not self._is_stale():
            return self._inventory
        with self._reading:
            return self._read() if self._is_stale() else self._inventory

    def hung_call(self, uuid: ids.GpuUuid) -> errors.Hung | None:
        """Return the overdue call of a GPU."""
        return self._nvml.hung_call(uuid)

    def refresh(self) -> model.Inventory:
        """Read the inventory. Raises DeviceFault, and the last one stays."""
        with self._reading:
            return self._read()

    def _is_stale(self) -> bool:
        return self._stale

    def _read(self) -> model.Inventory:
        """Read the inventory; the caller is the only reader."""
        doubts, counts = self._doubts, Counter(self._refresh_counts)
        try:
            instances = self._ours()
            inventory = self._nvml.inventory()
            instances |= self._ours()
        except Exception:
            self._stale = True
            raise
        with self._swapping:
            marked = (model.mark_own(gpu, instances) for gpu in inventory.gpus)
            gpus = tuple(self._newest_reading(gpu, counts) for gpu in marked)
            inventory = dataclasses.replace(inventory, gpus=gpus)
            merged = model.retain_lost(self._inventory, inventory)
            if merged != self._inventory:  # the same object spares readers their work
                self._inventory = merged
            self._stale = self._doubts != doubts
            self._nvml.set_gpus(self._inventory)
            self._store.write(self._inventory)
        return self._inventory

    def refresh_gpu(self, uuid: ids.GpuUuid) -> model.Gpu:
        """Re-read one GPU's minor and MIG, after a change of them.

        The caller holds the GPU. Raises DeviceFault, and the inventory is no longer trusted.
        """
        gpu = self._read_again(
            uuid, lambda previous: model.mark_own(self._nvml.refresh_gpu(previous), self._ours())
        )
        with self._swapping:
            self._swap(gpu)
            self._store.write(self._inventory)
        return gpu

    def refresh_changed(self, uuids: Iterable[ids.GpuUuid]) -> model.Inventory:
        """Return the inventory; re-read it if one of these GPUs is not as known.

        After changes of ours it is. Raises DeviceFault as `refresh` does.
        """
        for uuid in uuids:
            gpu = self._inventory.by_uuid(uuid)
            try:
                if gpu is None or not model.is_same_mig(gpu, self._nvml.refresh_gpu(gpu)):
                    return self.refresh()
            except errors.DeviceFault:
                return self.refresh()
        return self._inventory

    def is_current(self, gpu: model.Gpu, profile_ids: Iterable[int]) -> bool:
        """Return whether its MIG mode and its instances of some profiles are as in `gpu`.

        False if that cannot be read: then `refresh_gpu` raises why.
        """
        try:
            return self._nvml.is_current(gpu, profile_ids)
        except errors.DeviceFault:
            return False

    def set_mig_mode(self, uuid: ids.GpuUuid, *, enabled: bool) -> None:
        """Record that we changed the MIG mode, so that there is no instance; re-read the minor.

        The caller holds the GPU. Raises DeviceFault as `refresh_gpu` does.
        """
        minor = self._read_again(uuid, self._nvml.read_minor)
        self._replace(
            uuid,
            lambda gpu: model.with_mig(dataclasses.replace(gpu, minor=minor), (), enabled=enabled),
        )

    def add_instance(self, uuid: ids.GpuUuid, instance: mig.Instance) -> None:
        """Record that we created a MIG instance; the caller holds the GPU."""
        own = dataclasses.replace(instance, ours=True)
        self._replace(uuid, lambda gpu: model.with_instance(gpu, own))

    def remove_instance(self, ref: mig.InstanceRef) -> None:
        """Record that we destroyed a MIG instance; the caller holds the GPU."""
        self._replace(ref.gpu, lambda gpu: model.without_instance(gpu, ref))

    def _read_again(self, uuid: ids.GpuUuid, read: Callable[[model.Gpu], T]) -> T:
        """Read something of a GPU. Raises DeviceFault, and the inventory is no longer trusted."""
        previous = next((gpu for gpu in self._inventory.all_gpus if gpu.uuid == uuid), None)
        if previous is None:
            raise errors.DeviceFault(uuid, "finding it", -1, "not, or no longer, on this node")
        try:
            return read(previous)
        except errors.Hung as hung:
            with self._swapping:
                if self._inventory.by_uuid(uuid) is not None:
                    self._inventory = model.without_gpu(self._inventory, previous, str(hung))
            raise
        except errors.DeviceFault:
            with self._swapping:
                if self._inventory.by_uuid(uuid) is not None:
                    self._doubts += 1
                    self._stale = True
            raise

    def _replace(self, uuid: ids.GpuUuid, change: Callable[[model.Gpu], model.Gpu]) -> None:
        """Replace a GPU that can be read; a reading in progress keeps the new one."""
        with self._swapping:
            previous = self._inventory.by_uuid(uuid)
            if previous is not None:
                self._swap(change(previous))

    def _swap(self, gpu: model.Gpu) -> None:
        """Have a GPU as it is now; the caller holds `_swapping`."""
        self._refresh_counts[gpu.uuid] += 1
        self._inventory = model.with_gpu(self._inventory, gpu)
        self._nvml.set_gpus(self._inventory)

    def _newest_reading(self, gpu: model.Gpu, counts: Counter[ids.GpuUuid]) -> model.Gpu:
        """Return a GPU as just read, unless it was refreshed meanwhile."""
        refreshed = self._inventory.by_uuid(gpu.uuid)
        if refreshed is None or self._refresh_counts[gpu.uuid] == counts[gpu.uuid]:
            return gpu
        return dataclasses.replace(gpu, minor=refreshed.minor, mig=refreshed.mig)
