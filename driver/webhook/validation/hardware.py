"""The most that is published, to warn of what nothing here can do. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from driver import names
from driver.resources.dra import slices
from driver.resources.sharing import multi_user


@dataclass(frozen=True, slots=True)
class Hardware:
    """Bytes of the largest GPU and of the largest MIG placement; 0 where none is published.

    `newest_driver` is a major version, 0 likewise.
    """

    gpu_bytes: int = 0
    mig_bytes: int = 0
    newest_driver: int = 0

    def max_bytes(self, *, mig: bool) -> int:
        """Memory of the largest MIG device or GPU; 0 if unknown."""
        return self.mig_bytes if mig else self.gpu_bytes


UNKNOWN = Hardware()


def slice_hardware(resource_slice: slices.Slice, driver: str) -> Hardware:
    """Return the hardware of one slice; empty for another driver's."""
    if resource_slice.driver != driver:
        return UNKNOWN
    gpus, parts, newest = 0, 0, 0
    for device in resource_slice.devices:
        memory = device.capacity.get(names.CAP_MEMORY)
        size = memory.value.units if memory else 0
        if device.attributes.get(names.ATTR_TYPE) == names.TYPE_MIG:
            parts = max(parts, size)
        else:
            gpus = max(gpus, size)
        if version := device.attributes.get(names.ATTR_DRIVER_VERSION):
            newest = max(newest, multi_user.major(str(version)))
    return Hardware(gpus, parts, newest)


def max_hardware(hardwares: Iterable[Hardware]) -> Hardware:
    """Return the maximum of several."""
    every = tuple(hardwares)
    return Hardware(
        max((hardware.gpu_bytes for hardware in every), default=0),
        max((hardware.mig_bytes for hardware in every), default=0),
        max((hardware.newest_driver for hardware in every), default=0),
    )
