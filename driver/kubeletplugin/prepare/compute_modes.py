"""Remembers the compute mode that a GPU had before claims shared it, and has it again afterwards.

It is written down before the first change, so that it is known however that goes: a call may hang
and be carried out later, and the process may end. A mode is lost when the driver is loaded again,
and with it what is remembered.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.runtime.files import atomic, failpoints

DEFAULT: Final = 0
EXCLUSIVE: Final = 3
"""Every process, or one alone (nvml.h, nvmlComputeMode_t)."""
_MODE: Final = 0o600


class PersistentComputeModes:
    """Implements `ports.ComputeModes`; both plugins of a rolling update have the folder.

    `load` identifies the load of the driver (`time_slices.driver_load`).
    """

    def __init__(
        self, knob: ports.ComputeModeAccess, folder: Path, load: Callable[[], str]
    ) -> None:
        self._access = knob
        self._folder = folder
        self._load = load

    def set_shared(
        self, gpu: ids.GpuUuid, *, exclusive: bool, known: int | None = None
    ) -> int | None:
        """See `ports.ComputeModes`. A mode that cannot be read is Unchanged."""
        try:
            now = self._access.read(gpu)
        except errors.Hung as hung:
            raise errors.HungUnchanged(hung.device, hung.call, hung.waited_s) from hung
        except errors.DeviceFault as fault:
            raise errors.Unchanged(fault.device, fault.call, fault.code, fault.text) from fault
        if now is None:
            return None
        before = self._read_mode(gpu)
        if before is None:
            before = now if known is None else known
            self._write_mode(gpu, before)
        self._set_mode(gpu, now, EXCLUSIVE if exclusive else DEFAULT)
        return before

    def restore(self, gpu: ids.GpuUuid, otherwise: int | None = None) -> None:
        """See `ports.ComputeModes`."""
        noted = self._read_mode(gpu)
        wanted = otherwise if noted is None else noted
        if wanted is not None:
            self._set_mode(gpu, self._access.read(gpu), wanted)
        atomic.remove(self._folder / gpu, failpoints.NO_OBSERVER, synced=False)

    def set_exclusive(self, instance: ids.MigUuid, *, exclusive: bool) -> None:
        """See `ports.ComputeModes`."""
        wanted = EXCLUSIVE if exclusive else DEFAULT
        self._set_mode(instance, self._access.read(instance), wanted)

    def _set_mode(self, device: ids.GpuUuid | ids.MigUuid, now: int | None, wanted: int) -> None:
        """Have a mode; nothing is written where it is so, or where the device has none."""
        if now not in {None, wanted}:
            self._access.write(device, wanted)

    def _write_mode(self, gpu: ids.GpuUuid, mode: int) -> None:
        content = json.dumps({"mode": mode, "load": self._load()}).encode()
        atomic.replace(self._folder / gpu, content, _MODE, failpoints.NO_OBSERVER, synced=False)

    def _read_mode(self, gpu: ids.GpuUuid) -> int | None:
        """Read the mode of this load of the driver; None where there is none. Raises NodeFault."""
        try:
            content = json.loads(atomic.read(self._folder / gpu) or b"{}")
        except ValueError:
            return None
        if not isinstance(content, dict) or content.get("load") != self._load():
            return None
        mode = content.get("mode")
        return mode if isinstance(mode, int) else None
