"""What the node's GPUs are, as last read."""

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from driver import errors, ids
from driver.devices import mig, model
from driver.kubeletplugin import ports

OwnInstances = Callable[[], frozenset[mig.InstanceRef]]
"""Where MIG instances of ours are or may be, by the node's records. Raises DeviceFault."""


def _no_instances() -> frozenset[mig.InstanceRef]:
    return frozenset()


class InventoryStore(Protocol):
    """Where the inventory outlives the process. Neither raises."""

    def read(self) -> model.Inventory:
        """The GPUs that were known last, as such that cannot be read now."""
        ...

    def write(self, inventory: model.Inventory) -> None:
        """Keep it."""
        ...


class NoInventoryStore:
    """Keeps nothing."""

    def read(self) -> model.Inventory:
        """No GPU."""
        return model.Inventory()

    def write(self, inventory: model.Inventory) -> None:
        """Keep nothing."""


class Discovery:
    """The inventory, read when asked to. Thread safe.

    Before the first reading it is what `memory` holds, none of which can be read yet: a GPU that
    hangs as this process starts is known all the same. A GPU whose call hangs is taken for one
    that cannot be read, and changes nothing for the others.

    Of its MIG instances those at `ours` are known as ours: a record is there before an instance is
    made and after it is destroyed, so it is asked before and after they are read.
    """

    def __init__(
        self,
        nvml: ports.Nvml,
        ours: OwnInstances = _no_instances,
        memory: InventoryStore | None = None,
    ) -> None:
        self._nvml = nvml
        self._ours = ours
        self._store = memory or NoInventoryStore()
        self._reading = threading.Lock()
        self._swapping = threading.Lock()
        self._inventory = self._store.read()
        nvml.set_gpus(self._inventory)
        self._refresh_counts: Counter[ids.GpuUuid] = Counter()
        self._doubts = 0
        self._stale = False

    def current(self) -> model.Inventory:
        """As last read."""
        return self._inventory

    def trusted(self) -> model.Inventory:
        """As last read, and read again when the last reading failed. Raises DeviceFault.

        Minors may have moved by the time that a driver is back, so what it said before is no
        ground to prepare on. Of many callers one reads; while others read, what was good is.
        """
        if not self._is_stale():
            return self._inventory
        with self._reading:
            return self._read() if self._is_stale() else self._inventory

    def hung_call(self, uuid: ids.GpuUuid) -> errors.Hung | None:
        """The call of a GPU that does not return."""
        return self._nvml.hung_call(uuid)

    def refresh(self) -> model.Inventory:
        """Read it again. Raises DeviceFault, and the last one stays."""
        with self._reading:
            return self._read()

    def _is_stale(self) -> bool:
        return self._stale

    def _read(self) -> model.Inventory:
        """The caller is the only one that reads."""
        doubts, again = self._doubts, Counter(self._refresh_counts)
        try:
            ours = self._ours()
            found = self._nvml.inventory()
            ours |= self._ours()
        except Exception:
            self._stale = True
            raise
        with self._swapping:
            apart = (model.mark_own(gpu, ours) for gpu in found.gpus)
            gpus = tuple(self._newest_reading(gpu, again) for gpu in apart)
            found = dataclasses.replace(found, gpus=gpus)
            self._inventory = model.retain_lost(self._inventory, found)
            self._stale = self._doubts != doubts
            self._save()
        return self._inventory

    def refresh_gpu(self, uuid: ids.GpuUuid) -> model.Gpu:
        """One GPU, its minor and its MIG read again; who has changed them must ask for it.

        The caller holds the GPU. Raises DeviceFault, and what is known is no longer trusted.
        """
        before = next((gpu for gpu in self._inventory.known if gpu.uuid == uuid), None)
        if before is None:
            raise errors.DeviceFault(uuid, "finding it", -1, "not, or no longer, on this node")
        try:
            found = model.mark_own(self._nvml.refresh_gpu(before), self._ours())
        except errors.Hung as hung:
            with self._swapping:
                if self._inventory.by_uuid(uuid) is not None:
                    self._inventory = model.without_gpu(self._inventory, before, str(hung))
            raise
        except errors.DeviceFault:
            with self._swapping:
                if self._inventory.by_uuid(uuid) is not None:
                    self._doubts += 1
                    self._stale = True
            raise
        with self._swapping:
            self._refresh_counts[uuid] += 1
            self._inventory = model.with_gpu(self._inventory, found)
            self._save()
        return found

    def _save(self) -> None:
        self._nvml.set_gpus(self._inventory)
        self._store.write(self._inventory)

    def _newest_reading(self, gpu: model.Gpu, again: Counter[ids.GpuUuid]) -> model.Gpu:
        """A GPU as just read with all others, unless it was read again meanwhile."""
        known = self._inventory.by_uuid(gpu.uuid)
        if known is None or self._refresh_counts[gpu.uuid] == again[gpu.uuid]:
            return gpu
        return dataclasses.replace(gpu, minor=known.minor, mig=known.mig)
