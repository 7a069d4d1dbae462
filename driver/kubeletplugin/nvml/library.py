"""The NVML library: loaded from the driver root, started, read, closed.

NVML is initialised once and stays so. After a failure of the library as a whole, or with a GPU that
cannot be read, the next read starts it anew (a lost GPU comes back no other way). The caller
decides when to retry.
"""

import contextlib
import ctypes
import dataclasses
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pynvml

from driver import errors, ids
from driver.devices import mig, model
from driver.kubeletplugin.host import driver_root
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls, lanes
from driver.kubeletplugin.nvml.queries import gpu as querie_gpu
from driver.kubeletplugin.nvml.queries import mig_layout, nvlink
from driver.runtime.files import driver_search

_WITHIN_S: Final = 20.0
"""Longest time for reading all GPUs: each takes some hundred calls."""


class NvmlLibrary:
    """The library `libnvidia-ml.so.1` of a driver root; pynvml can hold one per process.

    Thread safe. `session` is the library's session, shared with other callers.
    """

    def __init__(
        self,
        root: Path | driver_search.Search,
        host_root: Path,
        shared_lanes: lanes.Lanes | None = None,
    ) -> None:
        self._root = driver_root.DriverRoot(root)
        self._host_root = host_root
        self.session = gpu_calls.GpuSession(self._start, _end, shared_lanes)
        self._known_mig: dict[ids.GpuUuid, tuple[int, mig.Mig]] = {}

    def inventory(self) -> model.Inventory:
        """Read every GPU, in PCI order, and those that cannot be read. Raises DeviceFault.

        All are read at once: a GPU that hangs delays the others no longer than one call may take.
        """
        try:
            inventory, number = self._read_all()
        except errors.Hung:
            raise
        except errors.DeviceFault:
            self.session.close()
            raise
        if inventory.broken and not self.session.lanes.has_hung():
            self.session.drop(number)
        return inventory

    def refresh_gpu(self, gpu: model.Gpu) -> model.Gpu:
        """Re-read the fields of a GPU that a MIG change affects. Raises DeviceFault."""

        def read(handle: object) -> model.Gpu:
            return dataclasses.replace(
                gpu,
                minor=_read_minor(gpu, handle),
                mig=gpu.mig and mig_layout.reread_mig(gpu.pci, handle, gpu.mig),
            )

        return self.session.run_on(gpu.uuid, read)

    def read_minor(self, gpu: model.Gpu) -> int:
        """Return the GPU's minor number now. Raises DeviceFault."""
        return self.session.run_on(gpu.uuid, lambda handle: _read_minor(gpu, handle))

    def is_current(self, gpu: model.Gpu, profile_ids: Iterable[int]) -> bool:
        """Return whether its MIG mode and its instances of some profiles are as in `gpu`."""
        layout = gpu.mig
        if layout is None:
            return True
        return self.session.run_on(
            gpu.uuid, lambda handle: mig_layout.is_current(gpu.pci, handle, layout, profile_ids)
        )

    def set_gpus(self, inventory: model.Inventory) -> None:
        """Set the node's GPUs, as far as known."""
        self.session.set_gpus(inventory.all_gpus)

    def hung_call(self, gpu: ids.GpuUuid) -> errors.Hung | None:
        """Return the overdue call of the GPU."""
        return self.session.hung_call(gpu)

    def close(self) -> None:
        """Release the library; the next read starts it again."""
        self.session.close()

    def _start(self) -> None:
        try:
            library = self._root.require(driver_root.NVML_LIBRARY)
            pynvml.nvmlLib = ctypes.CDLL(str(library))
        except (errors.NodeFault, OSError) as e:
            code = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
            raise errors.DeviceFault("", "loading NVML", code, str(e)) from e
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - keeps the old library's addresses
        nvml_errors.call_nvml("", pynvml.nvmlInitWithFlags, pynvml.NVML_INIT_FLAG_NO_GPUS)

    def _read_all(self) -> tuple[model.Inventory, int]:
        """Return the GPUs, and the number of the start they were counted in."""
        versions, count, number = self.session.run_library(
            lambda: (
                querie_gpu.read_versions(),
                nvml_errors.call_nvml("", pynvml.nvmlDeviceGetCount),
                self.session.number,
            )
        )
        indices = {self.session.index_lane(index, number): index for index in range(count)}
        results = self.session.lanes.gather(
            {
                lane: functools.partial(self._read, index, versions)
                for lane, index in indices.items()
            },
            _WITHIN_S,
        )
        read: list[tuple[model.Gpu, nvlink.Links]] = []
        broken: list[model.BrokenGpu] = []
        for result in results.values():
            if not isinstance(result, errors.DeviceFault):
                read.append(result)
            elif result.code in nvml_errors.LIBRARY_GONE:
                raise result
            else:
                broken.append(model.BrokenGpu(result.device, str(result)))
        for gpu, _ in read:
            self.session.record_index(gpu.index, number, gpu.uuid)
        gpus = model.sort_by_pci(nvlink.connect_peers(read))
        return model.Inventory(gpus, tuple(broken)), number

    def _read(self, index: int, versions: querie_gpu.Versions) -> tuple[model.Gpu, nvlink.Links]:
        with self.session.use() as number:

            def known_mig(uuid: ids.GpuUuid) -> mig.Mig | None:
                known_in, layout = self._known_mig.get(uuid, (number, None))
                return layout if known_in == number else None

            gpu, links = querie_gpu.read_gpu(index, versions, self._host_root, known_mig)
            if gpu.mig is not None:
                self._known_mig[gpu.uuid] = (number, gpu.mig)
            return gpu, links


def _read_minor(gpu: model.Gpu, handle: object) -> int:
    return int(nvml_errors.call_nvml(gpu.uuid, pynvml.nvmlDeviceGetMinorNumber, handle))


def _end() -> None:
    """Shut NVML down; ignore a library that is gone."""
    with contextlib.suppress(errors.DeviceFault):
        nvml_errors.call_nvml("", pynvml.nvmlShutdown)
