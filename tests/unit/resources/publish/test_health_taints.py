"""Ailments of a GPU as taints of its devices."""

import dataclasses

from driver import ids
from driver.devices import faces, health, mig, model
from driver.resources.publish import health_taints

GPU = model.Gpu(
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
SLICE = mig.Profile(19, "1g.10gb", 1, 9984, 2, (mig.Placement(0, 1), mig.Placement(1, 1)))
FIRST, SECOND = (
    mig.Instance(7 + start, SLICE.id, SLICE.placements[start], 0, ids.MigUuid(f"MIG-{start}"))
    for start in (0, 1)
)
PARTITIONED = dataclasses.replace(
    GPU,
    mig=mig.Mig(enabled=True, resetless=True, profiles=(SLICE,), instances=(FIRST, SECOND)),
)


def xid(
    code: int, instance: health.Instance | None = None, effect: health.Effect = "NoSchedule"
) -> health.Ailment:
    return health.Ailment("ration.dev/xid", str(code), effect, "failed", instance)


def tainted(*ailments: health.Ailment) -> dict[str, set[str]]:
    devices = health_taints.taints([PARTITIONED], {GPU.uuid: ailments})
    return {name: {taint.value for taint in taints} for name, taints in devices.items()}


def test_a_fault_of_the_gpu_taints_all_its_devices() -> None:
    names = {face.name for face in faces.all_faces(PARTITIONED)}
    monitors = {name for name in names if "monitor" in name}
    assert tainted(xid(79)) == {name: {"79"} for name in names - monitors}


def test_a_fault_of_an_instance_spares_the_devices_beside_it() -> None:
    devices = tainted(xid(45, health.Instance(FIRST.gpu_instance)))
    assert any("1g10gb-0" in name for name in devices)
    assert not any("1g10gb-1" in name for name in devices)


def test_of_more_faults_than_a_device_has_taints_for_the_strongest_stay() -> None:
    weak = [xid(code) for code in range(20)]
    strong = [xid(code, effect="NoExecute") for code in (95, 119)]
    for values in tainted(*weak, *strong).values():
        assert len(values) == health_taints.MAX_HEALTH_TAINTS
        assert {"95", "119"} <= values
