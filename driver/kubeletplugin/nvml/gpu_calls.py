"""Session in which each GPU's NVML calls run in the GPU's lane, with a cached handle.

Handles are looked up by PCI address. A lookup by UUID may initialize the GPUs it iterates over
(nvml.h), including one that hangs.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pynvml

from driver import clock, errors, ids
from driver.devices import model
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import lanes
from driver.kubeletplugin.nvml import session as sessions
from driver.kubeletplugin.nvml.queries import mig_layout

T = TypeVar("T")


class GpuSession(sessions.Session):
    """Session whose start and end are bounded like any other call.

    `lanes` holds every call in flight. Thread safe.
    """

    def __init__(
        self, start: sessions.Act, end: sessions.Act, shared_lanes: lanes.Lanes | None = None
    ) -> None:
        self.lanes = shared_lanes or lanes.Lanes(clock.SystemClock())
        super().__init__(
            lambda: self.lanes.call(lanes.LIBRARY, _start_unless_abandoned(start, end)),
            lambda: self._run_bounded(end),
        )
        self._guard = threading.Lock()
        self._handles: dict[str, tuple[int, object]] = {}
        self._indices: dict[int, tuple[int, ids.GpuUuid]] = {}
        self._addresses: dict[ids.GpuUuid, ids.PciAddress] = {}
        self._parents: dict[str, ids.GpuUuid] = {}

    def on_end(self, act: sessions.Ending) -> None:
        """See Session; a callback that hangs is not waited for."""
        super().on_end(lambda number: self._run_bounded(lambda: act(number)))

    def set_gpus(self, gpus: Iterable[model.Gpu]) -> None:
        """Set the node's GPUs: their addresses and MIG devices."""
        current = tuple(gpus)
        self._addresses = {gpu.uuid: gpu.pci for gpu in current}
        instances = (
            (gpu, instance) for gpu in current if gpu.mig for instance in gpu.mig.instances
        )
        self._parents = {instance.uuid: gpu.uuid for gpu, instance in instances if instance.uuid}

    def gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return the GPUs passed to `set_gpus` last."""
        return tuple(self._addresses)

    def hung_call(self, device: str) -> errors.Hung | None:
        """Return the overdue call of a GPU, or of a MIG device's GPU."""
        return self.lanes.hung_call(self.lane(device))

    def lane(self, device: str) -> str:
        """Return the lane of a GPU; a MIG device uses its GPU's."""
        return self._parents.get(device, device)

    def index_lane(self, index: int, number: int) -> str:
        """Return the lane of the GPU at an index of that start."""
        cached = self._indices.get(index)
        return cached[1] if cached is not None and cached[0] == number else f"GPU at index {index}"

    def record_index(self, index: int, number: int, gpu: ids.GpuUuid) -> None:
        """Record the GPU's index in the start of that number.

        A GPU has one index: others move when one goes or returns, and two indices of one lane would
        be read as one.
        """
        with self._guard:
            others = {key: entry for key, entry in self._indices.items() if entry[1] != gpu}
            self._indices = {**others, index: (number, gpu)}

    def run_on(self, device: str, act: Callable[[Any], T], limit_s: float | None = None) -> T:
        """Run `act` with the handle of a GPU or MIG device. Raises DeviceFault, Hung."""

        def visit() -> T:
            with self.use() as number:
                return act(self.handle(device, number))

        return self.lanes.call(self.lane(device), visit, limit_s)

    def run_library(self, act: Callable[[], T]) -> T:
        """Run `act`, which concerns no GPU. Raises DeviceFault, Hung."""

        def visit() -> T:
            with self.use():
                return act()

        return self.lanes.call(lanes.LIBRARY, visit)

    def handle(self, device: str, number: int) -> object:
        """Return the handle of a GPU or MIG device; call in its lane, within the start `number`."""
        cached = self._handles.get(device)
        if cached is not None and cached[0] == number:
            return cached[1]
        parent = self._parents.get(device)
        if parent is not None:
            return _mig_handle(device, self.handle(parent, number))
        handle = self._find_gpu(device)
        if not device.startswith("MIG-"):
            self.cache_handle(device, number, handle)
        return handle

    def cache_handle(self, gpu: str, number: int, handle: object) -> None:
        """Cache a GPU's handle until the library is started anew."""
        with self._guard:
            self._handles[gpu] = (number, handle)

    def drop_handle(self, gpu: str) -> None:
        """Drop the cached handle after a failure, so that it is looked up again."""
        with self._guard:
            self._handles.pop(gpu, None)

    def _find_gpu(self, uuid: str) -> object:
        address = self._addresses.get(ids.GpuUuid(uuid))
        if address is not None:
            handle = nvml_errors.call_nvml(uuid, pynvml.nvmlDeviceGetHandleByPciBusId, address)
            if nvml_errors.call_nvml(uuid, pynvml.nvmlDeviceGetUUID, handle) == uuid:
                return handle
        return nvml_errors.call_nvml(uuid, pynvml.nvmlDeviceGetHandleByUUID, uuid)

    def _run_bounded(self, act: sessions.Act) -> None:
        with contextlib.suppress(errors.DeviceFault):
            self.lanes.call(lanes.LIBRARY, act)


def _start_unless_abandoned(start: sessions.Act, end: sessions.Act) -> sessions.Act:
    """Return a start that undoes itself if it was abandoned: starts are counted."""

    def begin() -> None:
        start()
        visit = lanes.current_task()
        if visit is not None and visit.abandoned:
            visit.abandoned = False
            end()

    return begin


def _mig_handle(device: str, parent: object) -> object:
    """Return the handle of a MIG device, searched among its GPU's."""
    handle = mig_layout.find_device_handle(device, parent)
    if handle is None:
        code = pynvml.NVML_ERROR_NOT_FOUND
        raise errors.DeviceFault(device, "finding it on its GPU", code, "Not Found")
    return handle
