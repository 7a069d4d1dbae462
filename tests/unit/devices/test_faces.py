import dataclasses

import pytest

from driver import ids
from driver.devices import faces, model

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


def test_a_face_is_named_after_the_pci_address() -> None:
    assert faces.WholeFace(GPU).name == "gpu-0000-18-00-0"


def test_faces_stand_in_pci_order_whatever_the_minors_are() -> None:
    other = dataclasses.replace(GPU, pci=ids.PciAddress("0000:0a:00.0"), minor=9)
    found = faces.of_inventory(model.Inventory((GPU, other)))
    assert [face.name for face in found] == ["gpu-0000-0a-00-0", "gpu-0000-18-00-0"]


def test_what_is_not_known_is_not_published() -> None:
    found = faces.attributes(faces.WholeFace(GPU), model.Inventory((GPU,)), "controller")
    assert not {"resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"} & set(found)
    assert found["type"] == "gpu"
    assert found["allocator"] == "controller"


def test_nvlink_peers_are_a_bitmask_in_pci_order() -> None:
    pcis = [ids.PciAddress(f"0000:{bus:02x}:00.0") for bus in (1, 2, 3)]
    gpus = tuple(
        dataclasses.replace(GPU, pci=pci, nvlink_peers=frozenset(pcis) - {pci}) for pci in pcis
    )
    inventory = model.Inventory(gpus)
    masks = [
        faces.attributes(face, inventory, "controller")["nvlinkPeers"]
        for face in faces.of_inventory(inventory)
    ]
    assert masks == [0b110, 0b101, 0b011]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("580.105.08", "580.105.8"), ("535.54", "535.54.0"), ("1.2.3.4", "1.2.3"), ("", None)],
)
def test_a_driver_version_becomes_a_semantic_version(version: str, expected: str | None) -> None:
    found = faces.semver(version)
    assert (found.text if found else None) == expected
