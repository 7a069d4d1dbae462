"""The largest memory that is published, to warn of limits that nothing here can hold. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from driver import names
from driver.resources import slices


@dataclass(frozen=True, slots=True)
class Hardware:
    """Bytes of the largest GPU and of the largest MIG placement; 0 where none is published."""

    gpu_bytes: int = 0
    mig_bytes: int = 0

    def most(self, *, mig: bool) -> int:
        """Of a MIG device or of a GPU, whole or shared; 0 where it is not known."""
        return self.mig_bytes if mig else self.gpu_bytes


UNKNOWN = Hardware()


def of_slice(found: slices.Slice, driver: str) -> Hardware:
    """What one slice tells; nothing where it is another driver's."""
    if found.driver != driver:
        return UNKNOWN
    gpus, parts = 0, 0
    for device in found.devices:
        memory = device.capacity.get(names.CAP_MEMORY)
        size = memory.value.units if memory else 0
        if device.attributes.get(names.ATTR_TYPE) == names.TYPE_MIG:
            parts = max(parts, size)
        else:
            gpus = max(gpus, size)
    return Hardware(gpus, parts)


def largest(found: Iterable[Hardware]) -> Hardware:
    """Of several."""
    every = tuple(found)
    return Hardware(
        max((one.gpu_bytes for one in every), default=0),
        max((one.mig_bytes for one in every), default=0),
    )
