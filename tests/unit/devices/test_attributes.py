import dataclasses

import pytest

from driver import ids
from driver.devices import attributes, faces
from tests.support.builders.gpus import HALF, PLAIN, a_gpu, an_instance


def of(face: faces.Face) -> attributes.Attributes:
    return attributes.face_attributes(face, 0b110, "controller")


def test_unknown_attributes_are_not_published() -> None:
    result = of(faces.WholeFace(PLAIN))
    assert not {"resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"} & set(result)
    assert result["type"] == "gpu"
    assert result["allocator"] == "controller"


def test_only_the_whole_face_is_of_type_gpu() -> None:
    gpu = a_gpu()
    offering = faces.Offering(kinds=frozenset(faces.Kind))
    types = [of(face)["type"] for face in faces.offered_faces(gpu, offering)]
    assert types == ["gpu", *["mig"] * 4, "gpu-share", "gpu-share", "gpu-monitor"]


def test_nvlink_is_said_of_whole_gpus_and_not_of_their_parts() -> None:
    assert of(faces.WholeFace(PLAIN))["nvlinkPeers"] == 0b110
    part = faces.MigFace(a_gpu(), HALF, HALF.placements[0])
    assert "nvlinkPeers" not in of(part)


def test_only_an_instance_that_exists_has_a_uuid_of_its_own() -> None:
    gpu = a_gpu()
    placement = HALF.placements[0]
    assert "uuid" not in of(faces.MigFace(gpu, HALF, placement))
    present = of(faces.MigFace(gpu, HALF, placement, an_instance(HALF, 0)))
    assert (present["uuid"], present["parentUUID"]) == ("MIG-1", "GPU-1")


def test_a_guest_says_that_its_time_slice_cannot_be_set() -> None:
    guest = dataclasses.replace(PLAIN, virtual=True)
    result = of(faces.ShareFace(guest, faces.Sharing.TIME_SLICING, 8))
    assert result["timeSliceInterval"] is False
    assert "timeSliceInterval" not in of(faces.ShareFace(guest, faces.Sharing.MPS, 8))


def test_nvlink_peers_are_a_bitmask_in_pci_order() -> None:
    pcis = tuple(ids.PciAddress(f"0000:{bus:02x}:00.0") for bus in (1, 2, 3))
    masks = [
        attributes.peer_mask(
            dataclasses.replace(PLAIN, pci=pci, nvlink_peers=frozenset(pcis) - {pci}), pcis
        )
        for pci in pcis
    ]
    assert masks == [0b110, 0b101, 0b011]


def test_a_long_name_is_cut_between_characters() -> None:
    long = dataclasses.replace(PLAIN, product="x" + "é" * 40)
    product = of(faces.WholeFace(long))["productName"]
    assert product == "x" + "é" * 31


@pytest.mark.parametrize(
    ("version", "expected"),
    [("580.105.08", "580.105.8"), ("535.54", "535.54.0"), ("1.2.3.4", "1.2.3"), ("", None)],
)
def test_a_driver_version_becomes_a_semantic_version(version: str, expected: str | None) -> None:
    semver = attributes.semver(version)
    assert (semver.text if semver else None) == expected
