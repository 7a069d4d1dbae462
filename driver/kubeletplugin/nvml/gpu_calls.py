"""Where the plugin's threads enter NVML: each GPU's calls in its lane, with a handle that is kept.

A handle is had by the GPU's PCI address. The search by UUID may initialize the GPUs that it comes
by (nvml.h), and with them the one that hangs.
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
    """A session whose start and end, too, are waited for no longer than any call.

    `lanes` are all that is under way. Thread safe.
    """

    def __init__(
        self, start: sessions.Act, end: sessions.Act, inside: lanes.Lanes | None = None
    ) -> None:
        self.lanes = inside or lanes.Lanes(clock.SystemClock())
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
        """See Session; one that hangs is not waited for."""
        super().on_end(lambda number: self._run_bounded(lambda: act(number)))

    def set_gpus(self, gpus: Iterable[model.Gpu]) -> None:
        """These are the node's GPUs, at these addresses, with these MIG devices."""
        there = tuple(gpus)
        self._addresses = {gpu.uuid: gpu.pci for gpu in there}
        parts = ((gpu, part) for gpu in there if gpu.mig for part in gpu.mig.instances)
        self._parents = {part.uuid: gpu.uuid for gpu, part in parts if part.uuid}

    def gpus(self) -> tuple[ids.GpuUuid, ...]:
        """The GPUs that `know` was told of last."""
        return tuple(self._addresses)

    def hung_call(self, device: str) -> errors.Hung | None:
        """The call of a GPU, or of a MIG device's GPU, that is overdue."""
        return self.lanes.hung_call(self.lane(device))

    def lane(self, device: str) -> str:
        """The lane of a GPU, or of a MIG device: its GPU's."""
        return self._parents.get(device, device)

    def index_lane(self, index: int, number: int) -> str:
        """The lane of the GPU at an index of that start."""
        kept = self._indices.get(index)
        return kept[1] if kept is not None and kept[0] == number else f"GPU at index {index}"

    def record_index(self, index: int, number: int, gpu: ids.GpuUuid) -> None:
        """In the start of that number the GPU has that index."""
        self._indices[index] = (number, gpu)

    def run_on(self, device: str, act: Callable[[Any], T], limit_s: float | None = None) -> T:
        """Have the act done with the handle of a GPU or MIG device. Raises DeviceFault, Hung."""

        def visit() -> T:
            with self.use() as number:
                return act(self.handle(device, number))

        return self.lanes.call(self.lane(device), visit, limit_s)

    def run_library(self, act: Callable[[], T]) -> T:
        """Have an act done that concerns no GPU. Raises DeviceFault, Hung."""

        def visit() -> T:
            with self.use():
                return act()

        return self.lanes.call(lanes.LIBRARY, visit)

    def handle(self, device: str, number: int) -> object:
        """The handle of a GPU or MIG device, in the lane and within the start of that number."""
        kept = self._handles.get(device)
        if kept is not None and kept[0] == number:
            return kept[1]
        parent = self._parents.get(device)
        if parent is not None:
            return _mig_handle(device, self.handle(parent, number))
        made = self._find_gpu(device)
        if not device.startswith("MIG-"):
            self.cache_handle(device, number, made)
        return made

    def cache_handle(self, gpu: str, number: int, handle: object) -> None:
        """Remember a GPU's handle until the start is another."""
        with self._guard:
            self._handles[gpu] = (number, handle)

    def drop_handle(self, gpu: str) -> None:
        """Have the handle looked up anew: what was asked with it has failed."""
        with self._guard:
            self._handles.pop(gpu, None)

    def _find_gpu(self, uuid: str) -> object:
        address = self._addresses.get(ids.GpuUuid(uuid))
        if address is not None:
            found = nvml_errors.call_nvml(uuid, pynvml.nvmlDeviceGetHandleByPciBusId, address)
            if nvml_errors.call_nvml(uuid, pynvml.nvmlDeviceGetUUID, found) == uuid:
                return found
        return nvml_errors.call_nvml(uuid, pynvml.nvmlDeviceGetHandleByUUID, uuid)

    def _run_bounded(self, act: sessions.Act) -> None:
        with contextlib.suppress(errors.DeviceFault):
            self.lanes.call(lanes.LIBRARY, act)


def _start_unless_abandoned(start: sessions.Act, end: sessions.Act) -> sessions.Act:
    """A start that nobody waits for any more is taken back: starts are counted."""

    def begin() -> None:
        start()
        visit = lanes.current_task()
        if visit is not None and visit.abandoned:
            visit.abandoned = False
            end()

    return begin


def _mig_handle(device: str, parent: object) -> object:
    """The handle of a MIG device, among its GPU's."""
    found = mig_layout.find_device_handle(device, parent)
    if found is None:
        code = pynvml.NVML_ERROR_NOT_FOUND
        raise errors.DeviceFault(device, "finding it on its GPU", code, "Not Found")
    return found
