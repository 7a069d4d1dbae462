"""The library itself: loaded from the driver root, started, read, let go.

NVML is initialised once and stays so; after a failure of the library as a whole, or with a GPU
that cannot be read, the next reading starts it anew (a lost GPU comes back no other way). When to
try again is the caller's to say.
"""

import contextlib
import ctypes
import dataclasses
import functools
from pathlib import Path
from typing import Final

import pynvml

from driver import errors, ids
from driver.devices import model
from driver.kubeletplugin.host import driver_root
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls, lanes
from driver.kubeletplugin.nvml.queries import gpu as querie_gpu
from driver.kubeletplugin.nvml.queries import mig_layout, nvlink
from driver.runtime.files import driver_search

_WITHIN_S: Final = 20.0
"""Longest time for reading all GPUs: each takes some hundred calls."""


class NvmlLibrary:
    """The library `libnvidia-ml.so.1` of a driver root; pynvml can hold one a process.

    Thread safe. `session` is its time between start and end, for others that call it.
    """

    def __init__(
        self,
        place: Path | driver_search.Search,
        host_root: Path,
        inside: lanes.Lanes | None = None,
    ) -> None:
        self._root = driver_root.DriverRoot(place)
        self._host_root = host_root
        self.session = gpu_calls.GpuSession(self._start, _end, inside)

    def inventory(self) -> model.Inventory:
        """Every GPU that can be read, in PCI order, and those that cannot. Raises DeviceFault.

        All are read at once, so that one that hangs holds up the others no longer than a call may
        take.
        """
        try:
            found, number = self._read_all()
        except errors.Hung:
            raise
        except errors.DeviceFault:
            self.session.close()
            raise
        if found.broken and not self.session.lanes.has_hung():
            self.session.drop(number)
        return found

    def refresh_gpu(self, gpu: model.Gpu) -> model.Gpu:
        """What a change of its MIG changes of a GPU, read again. Raises DeviceFault."""

        def read(handle: object) -> model.Gpu:
            return dataclasses.replace(
                gpu,
                minor=int(nvml_errors.call_nvml(gpu.uuid, pynvml.nvmlDeviceGetMinorNumber, handle)),
                mig=gpu.mig and mig_layout.reread_mig(gpu.pci, handle, gpu.mig),
            )

        return self.session.run_on(gpu.uuid, read)

    def set_gpus(self, inventory: model.Inventory) -> None:
        """These are the GPUs that there are, as far as is known."""
        self.session.set_gpus(inventory.known)

    def hung_call(self, gpu: ids.GpuUuid) -> errors.Hung | None:
        """The call of the GPU that does not return."""
        return self.session.hung_call(gpu)

    def close(self) -> None:
        """Let go of the library; the next reading starts it again."""
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
        """The GPUs, and the number of the start that they were counted in."""
        versions, count, number = self.session.run_library(
            lambda: (
                querie_gpu.read_versions(),
                nvml_errors.call_nvml("", pynvml.nvmlDeviceGetCount),
                self.session.number,
            )
        )
        lanes_of = {self.session.index_lane(index, number): index for index in range(count)}
        answers = self.session.lanes.gather(
            {
                lane: functools.partial(self._read, index, versions)
                for lane, index in lanes_of.items()
            },
            _WITHIN_S,
        )
        read: list[tuple[model.Gpu, nvlink.Links]] = []
        broken: list[model.BrokenGpu] = []
        for answer in answers.values():
            if not isinstance(answer, errors.DeviceFault):
                read.append(answer)
            elif answer.code in nvml_errors.LIBRARY_GONE:
                raise answer
            else:
                broken.append(model.BrokenGpu(answer.device, str(answer)))
        for gpu, _ in read:
            self.session.record_index(gpu.index, number, gpu.uuid)
        found = model.sort_by_pci(nvlink.connect_peers(read))
        return model.Inventory(found, tuple(broken)), number

    def _read(self, index: int, versions: querie_gpu.Versions) -> tuple[model.Gpu, nvlink.Links]:
        with self.session.use():
            return querie_gpu.read_gpu(index, versions, self._host_root)


def _end() -> None:
    """A library that is gone holds nothing any more."""
    with contextlib.suppress(errors.DeviceFault):
        nvml_errors.call_nvml("", pynvml.nvmlShutdown)
