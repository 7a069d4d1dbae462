"""MIG left on after a GPU's last claim, to be disabled later.

A GPU may be off the bus, or used by another program, when its last MIG claim ends. The claim is not
held up, and the mode is disabled once the GPU allows it and no claim has it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from driver import errors, ids
from driver.devices import model
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import locks
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import atomic, failpoints

_log = structlog.get_logger(__name__)
_MODE: Final = 0o600


class PendingGpus:
    """One file per GPU in `directory`, holding the boot it was written in. Raises NodeFault.

    Settings do not outlive a boot, so a file of an earlier boot is ignored.
    """

    def __init__(
        self, directory: Path, boot_id: str, watch: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self._directory = directory
        self._boot = boot_id.encode()
        self._watch = watch

    def add(self, gpu: ids.GpuUuid) -> None:
        """Record the GPU as pending."""
        atomic.replace(self._directory / gpu, self._boot, _MODE, self._watch)

    def list_gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return the pending GPUs, by UUID."""
        names = atomic.list_names(self._directory)
        finished = (name for name in names if atomic.target_name(name) == name)
        return tuple(
            ids.GpuUuid(name)
            for name in finished
            if atomic.read(self._directory / name) == self._boot
        )

    def remove(self, gpu: ids.GpuUuid) -> None:
        """Record that the GPU is done."""
        atomic.remove(self._directory / gpu, self._watch)


@dataclass(frozen=True, slots=True)
class PendingMigDisable:
    """Disables pending MIG. `refresh_gpu` re-reads a GPU; raises DeviceFault."""

    pending: PendingGpus
    records: Callable[[], tuple[checkpoint.Record, ...]]
    partitions: ports.Partitions
    refresh_gpu: Callable[[ids.GpuUuid], model.Gpu]
    locks: locks.Locks

    def repair(self) -> tuple[str, ...]:
        """Try each GPU once; return what could not be disabled. Raises NodeFault."""
        problems: list[str] = []
        for gpu in self.pending.list_gpus():
            try:
                with self.locks.gpus([gpu]):
                    self._try_disable(gpu)
            except errors.RationError as e:
                problems.append(f"MIG of {gpu}, on since its last claim: {e}")
        return tuple(problems)

    def _try_disable(self, gpu: ids.GpuUuid) -> None:
        if any(_holds_gpu(gpu, record) for record in self.records()):
            return  # its claim's steps were planned with the mode that they found
        self.partitions.disable(gpu, 0)
        layout = self.refresh_gpu(gpu).mig
        if layout is None or not layout.enabled:
            self.pending.remove(gpu)
            _log.info("MIG turned off, which an ended claim had left on", gpu=gpu)


def _holds_gpu(gpu: ids.GpuUuid, record: checkpoint.Record) -> bool:
    return any(device.gpu == gpu and not device.admin_access for device in record.devices)
