"""The library itself: loaded from the driver root, started, read, let go.

NVML is initialised once and stays so; after a failure of the library as a whole, or with a GPU
that cannot be read, the next reading starts it anew (a lost GPU comes back no other way). When to
try again is the caller's to say.
"""

import contextlib
import ctypes
import dataclasses
from pathlib import Path

import pynvml

from driver import errors
from driver.devices import model
from driver.files import driver_search
from driver.kubeletplugin import driver_root
from driver.kubeletplugin.nvml import calls, links, partition, reading
from driver.kubeletplugin.nvml import session as sessions


class NvmlLibrary:
    """The library `libnvidia-ml.so.1` of a driver root; pynvml can hold one a process.

    Thread safe. `session` is its time between start and end, for others that call it.
    """

    def __init__(self, place: Path | driver_search.Search, host_root: Path) -> None:
        self._root = driver_root.DriverRoot(place)
        self._host_root = host_root
        self.session = sessions.Session(self._start, _end)

    def inventory(self) -> model.Inventory:
        """Every GPU that can be read, in PCI order, and those that cannot. Raises DeviceFault."""
        try:
            with self.session.use() as number:
                found = self._read_all()
        except errors.DeviceFault:
            self.session.close()
            raise
        if found.broken:
            self.session.drop(number)
        return found

    def again(self, gpu: model.Gpu) -> model.Gpu:
        """What a change of its MIG changes of a GPU, read again. Raises DeviceFault."""
        with self.session.use():
            handle = calls.ask(gpu.uuid, pynvml.nvmlDeviceGetHandleByUUID, gpu.uuid)
            return dataclasses.replace(
                gpu,
                minor=int(calls.ask(gpu.uuid, pynvml.nvmlDeviceGetMinorNumber, handle)),
                mig=gpu.mig and partition.again(gpu.pci, handle, gpu.mig),
            )

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
        calls.ask("", pynvml.nvmlInitWithFlags, pynvml.NVML_INIT_FLAG_NO_GPUS)

    def _read_all(self) -> model.Inventory:
        versions = reading.versions()
        read: list[tuple[model.Gpu, links.Links]] = []
        broken: list[model.BrokenGpu] = []
        for index in range(calls.ask("", pynvml.nvmlDeviceGetCount)):
            try:
                read.append(reading.read(index, versions, self._host_root))
            except errors.DeviceFault as fault:
                if fault.code in calls.LIBRARY_GONE:
                    raise
                broken.append(model.BrokenGpu(fault.device, str(fault)))
        return model.Inventory(model.in_pci_order(links.joined(read)), tuple(broken))


def _end() -> None:
    """A library that is gone holds nothing any more."""
    with contextlib.suppress(errors.DeviceFault):
        calls.ask("", pynvml.nvmlShutdown)
