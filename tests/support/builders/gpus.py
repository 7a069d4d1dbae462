"""GPUs of one product as the driver models them, with MIG instances."""

import dataclasses

from driver import ids
from driver.devices import mig, model

PLAIN = model.Gpu(
    uuid=ids.GpuUuid("GPU-1"),
    pci=ids.PciAddress("0000:18:00.0"),
    minor=3,
    product="NVIDIA H100 80GB HBM3",
    brand="Nvidia",
    architecture="Hopper",
    cuda_capability=(9, 0),
    driver_version="580.05.08",
    cuda_driver_version=(13, 0),
    memory_bytes=81559 * 2**20,
)
EIGHTH = mig.Profile(19, "1g.10gb", 1, 9984, 2, (mig.Placement(0, 1), mig.Placement(1, 1)))
HALF = mig.Profile(9, "3g.40gb", 3, 40448, 2, (mig.Placement(0, 4), mig.Placement(4, 4)))
NAME = "gpu-0000-18-00-0"


def a_gpu(*instances: mig.Instance, enabled: bool = False, resetless: bool = True) -> model.Gpu:
    return dataclasses.replace(
        PLAIN, mig=mig.Mig(enabled, resetless, (HALF, EIGHTH), tuple(instances))
    )


def an_instance(profile: mig.Profile, start: int, uuid: str | None = "MIG-1") -> mig.Instance:
    placement = next(position for position in profile.placements if position.start == start)
    return mig.Instance(7, profile.id, placement, 0, ids.MigUuid(uuid) if uuid else None)
