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
        """Of a MIG device or of a GPU, whole or shared; 0 where it is not known."""
        return self.mig_bytes if mig else self.gpu_bytes


UNKNOWN = Hardware()


def slice_hardware(found: slices.Slice, driver: str) -> Hardware:
    """What one slice tells; nothing where it is another driver's."""
    if found.driver != driver:
        return UNKNOWN
    gpus, parts, newest = 0, 0, 0
    for device in found.devices:
        memory = device.capacity.get(names.CAP_MEMORY)
        size = memory.value.units if memory else 0
        if device.attributes.get(names.ATTR_TYPE) == names.TYPE_MIG:
            parts = max(parts, size)
        else:
            gpus = max(gpus, size)
        if version := device.attributes.get(names.ATTR_DRIVER_VERSION):
            newest = max(newest, multi_user.major(str(version)))
    return Hardware(gpus, parts, newest)


def max_hardware(found: Iterable[Hardware]) -> Hardware:
    """Of several."""
    every = tuple(found)
    return Hardware(
        max((one.gpu_bytes for one in every), default=0),
        max((one.mig_bytes for one in every), default=0),
        max((one.newest_driver for one in every), default=0),
    )
