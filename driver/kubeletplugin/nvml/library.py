"""The library itself: loaded from the driver root, started, read, let go.

NVML is initialised once and stays so; after a failure of the library as a whole, or with a GPU
that cannot be read, the next reading starts it anew (a lost GPU comes back no other way). When to
try again is the caller's to say.
"""

import ctypes
import threading
from pathlib import Path

import pynvml

from driver import errors
from driver.devices import model
from driver.kubeletplugin import driver_root
from driver.kubeletplugin.nvml import calls, links, reading


class NvmlLibrary:
    """The library `libnvidia-ml.so.1` of a driver root; pynvml can hold one a process.

    Thread safe: one call at a time.
    """

    def __init__(self, driver_path: Path, host_root: Path) -> None:
        self._root = driver_root.DriverRoot(driver_path)
        self._host_root = host_root
        self._lock = threading.Lock()
        self._open = False

    def inventory(self) -> model.Inventory:
        """Every GPU that can be read, in PCI order, and those that cannot. Raises DeviceFault."""
        with self._lock:
            self._initialise()
            try:
                found = self._read_all()
            except errors.DeviceFault:
                self._shut_down()
                raise
            if found.broken:
                self._shut_down()
            return found

    def close(self) -> None:
        """Let go of the library; the next reading starts it again."""
        with self._lock:
            self._shut_down()

    def _initialise(self) -> None:
        if self._open:
            return
        try:
            library = self._root.require(driver_root.NVML_LIBRARY)
            pynvml.nvmlLib = ctypes.CDLL(str(library))
        except (errors.NodeFault, OSError) as e:
            code = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
            raise errors.DeviceFault("", "loading NVML", code, str(e)) from e
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - keeps the old library's addresses
        calls.ask("", pynvml.nvmlInitWithFlags, pynvml.NVML_INIT_FLAG_NO_GPUS)
        self._open = True

    def _shut_down(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            calls.ask("", pynvml.nvmlShutdown)
        except errors.DeviceFault:
            return  # the library is gone: nothing is held any more

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
