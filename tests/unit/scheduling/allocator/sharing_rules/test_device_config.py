import pytest

from driver import errors
from driver.api import v1alpha1
from driver.resources.dra import claims, slices
from driver.resources.dra import requests as dra_requests
from driver.resources.sharing import compatibility
from driver.scheduling.allocator.sharing_rules import device_config
from tests.support import snapshots
from tests.support.allocation import workload
from tests.support.builders import objects, shared_claims

GPU = slices.parse_device(objects.a_device("gpu-0"), "device")
MIG = slices.parse_device(objects.with_values(objects.a_device("mig-0"), type="mig"), "device")
SHARE = slices.parse_device(objects.a_share_device("share", shared_claims.MPS), "device")


def read(claim: claims.Claim, *of_class: objects.Raw) -> device_config.DeviceConfigs:
    device_class = objects.device_class(config=[*of_class])
    return device_config.DeviceConfigs(
        snapshots.view(found_classes=[device_class]), workload(claim)
    )


def asking(*results: objects.Raw) -> claims.Claim:
    return objects.claim("c", config=[*results])


def way(claim: claims.Claim) -> dra_requests.Request:
    return claim.spec.requests[0].alternatives_or_self[0]


def interval(result: v1alpha1.Config | errors.BadInput) -> str | None:
    assert isinstance(result, v1alpha1.GpuConfig)
    sharing = result.sharing
    return (
        sharing.timeSlicing.interval if isinstance(sharing, v1alpha1.TimeSlicingSharing) else None
    )


def test_the_last_that_applies_wins_and_the_claims_come_after_the_classs() -> None:
    claim = asking(shared_claims.turns("Short"), shared_claims.turns("Medium"))
    assert interval(read(claim, shared_claims.turns("Long")).get(0, way(claim), GPU)) == "Medium"
    bare = asking()
    assert interval(read(bare, shared_claims.turns("Long")).get(0, way(bare), GPU)) == "Long"
    assert interval(read(bare).get(0, way(bare), GPU)) is None


def test_configuration_of_another_request_does_not_apply() -> None:
    claim = asking({**shared_claims.turns("Short"), "requests": ["other"]})
    assert interval(read(claim).get(0, way(claim), GPU)) is None


def test_configuration_of_another_driver_is_not_read() -> None:
    claim = asking({"opaque": {"driver": "nic.example.com", "parameters": {"any": "thing"}}})
    assert interval(read(claim).get(0, way(claim), GPU)) is None


def test_a_mig_device_and_a_whole_gpu_of_one_request_have_each_its_kind() -> None:
    claim = asking(shared_claims.mps(kind="MigDeviceConfig"), shared_claims.turns("Long"))
    device_configs = read(claim)
    assert interval(device_configs.get(0, way(claim), GPU)) == "Long"
    assert isinstance(device_configs.get(0, way(claim), MIG), v1alpha1.MigDeviceConfig)


def test_a_kind_that_names_the_request_of_another_device_is_wrong() -> None:
    claim = asking(objects.a_config("MigDeviceConfig", "gpu"))
    assert isinstance(read(claim).get(0, way(claim), GPU), errors.BadInput)
    assert isinstance(read(claim).get(0, way(claim), MIG), v1alpha1.MigDeviceConfig)


def test_terms_are_of_the_claims_namespace_and_the_devices_sharing() -> None:
    claim = asking(shared_claims.mps(multiUser=True))
    sharing_terms = read(claim).sharing_terms(0, way(claim), SHARE)
    assert isinstance(sharing_terms, compatibility.SharingTerms)
    assert (sharing_terms.sharing, sharing_terms.namespace, sharing_terms.multi_user) == (
        "mps",
        "default",
        True,
    )
    other = asking(shared_claims.turns("Long"))
    assert isinstance(read(other).sharing_terms(0, way(other), SHARE), compatibility.Conflict)


def test_terms_of_what_cannot_be_read_are_an_error() -> None:
    claim = asking(objects.a_config("MigDeviceConfig", "gpu"))
    with pytest.raises(errors.BadInput):
        read(claim).sharing_terms(0, way(claim), SHARE)


def test_a_claims_own_daemon_is_for_whole_and_mig_devices_of_plain_access() -> None:
    claim = asking(shared_claims.mps(), shared_claims.mps(kind="MigDeviceConfig"))
    device_configs = read(claim)
    assert device_configs.claim_mps(0, way(claim), GPU) is not None
    assert device_configs.claim_mps(0, way(claim), MIG) is not None
    assert device_configs.claim_mps(0, way(claim), SHARE) is None
    admin = objects.claim("c", objects.a_request(adminAccess=True), config=[shared_claims.mps()])
    assert read(admin).claim_mps(0, way(admin), GPU) is None
    assert read(asking()).claim_mps(0, way(asking()), GPU) is None


def test_only_a_shared_face_says_how_it_is_shared() -> None:
    assert device_config.sharing_kind(SHARE) == "mps"
    assert device_config.sharing_kind(GPU) == ""
