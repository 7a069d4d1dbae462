"""Grants of MIG devices for tests of the plan of a claim."""

import dataclasses

from driver import ids
from driver.devices import faces, mig, model
from driver.kubeletplugin.plan import steps

GPU = ids.GpuUuid("GPU-1")
EIGHTH = mig.Profile(19, "1g.10gb", 1, 9984, 7, tuple(mig.Placement(n, 1) for n in range(7)))
HALF = mig.Profile(9, "3g.40gb", 3, 40448, 2, (mig.Placement(0, 4), mig.Placement(4, 4)))
PLAIN = model.Gpu(
    uuid=GPU,
    pci=ids.PciAddress("0000:18:00.0"),
    minor=0,
    product="NVIDIA H100 80GB HBM3",
    brand="Nvidia",
    architecture="Hopper",
    cuda_capability=(9, 0),
    driver_version="580.105.08",
    cuda_driver_version=(13, 0),
    mig=mig.Mig(enabled=False, resetless=True, profiles=(EIGHTH, HALF)),
)


def a_gpu(uuid: str = "GPU-1", *, enabled: bool = False) -> model.Gpu:
    assert PLAIN.mig is not None
    return dataclasses.replace(
        PLAIN, uuid=ids.GpuUuid(uuid), mig=dataclasses.replace(PLAIN.mig, enabled=enabled)
    )


def a_part(
    profile: mig.Profile, start: int, gpu: str = "GPU-1", *, enabled: bool = False
) -> steps.Grant:
    placement = next(placement for placement in profile.placements if placement.start == start)
    return steps.Grant(
        "gpu", "node-1", faces.MigFace(a_gpu(gpu, enabled=enabled), profile, placement)
    )
