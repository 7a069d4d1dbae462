from typing import Any

import pytest

from driver import errors
from driver.api import decode, v1alpha1

VERSION = "resource.ration.dev/v1alpha1"
NVIDIA = "resource.nvidia.com/v1beta1"


def a_document(kind: str = "GpuConfig", version: str = VERSION, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, **fields}


def sharing(config: v1alpha1.Config) -> v1alpha1.Sharing | None:
    return config.sharing


def test_an_empty_configuration_is_the_device_as_it_is() -> None:
    assert decode.config(a_document(), "config[0]") == v1alpha1.GpuConfig()
    found = decode.config(a_document("MigDeviceConfig"), "config[0]")
    assert found == v1alpha1.MigDeviceConfig()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "config[0].apiVersion: is None; expected 'resource.ration.dev/v1alpha1' or"),
        (a_document(version="v1"), "config[0].apiVersion: is 'v1'"),
        (a_document("Gpu"), "config[0].kind: is 'Gpu'; expected one of GpuConfig, MigDeviceConfig"),
        ({"apiVersion": VERSION, "kind": ["GpuConfig"]}, "config[0].kind"),
        (
            a_document(share={}),
            "config[0].share: is not a field; expected one of apiVersion, crossNamespace, kind",
        ),
        (a_document(sharing={"strategy": "MIG"}), "config[0].sharing: Input tag 'MIG'"),
        (
            a_document(sharing={"strategy": "TimeSlicing", "timeSlicing": {"interval": "Huge"}}),
            "config[0].sharing.timeSlicing.interval: Input should be 'Default'",
        ),
        (
            a_document(sharing={"strategy": "MPS", "mps": {"activeThreadPercentage": 101}}),
            "less than or equal to 100",
        ),
        (
            a_document(sharing={"strategy": "MPS", "mps": {"pinnedMemory": "4 Gi"}}),
            "config[0].sharing.mps.pinnedMemory: String should match",
        ),
        (
            a_document(
                sharing={"strategy": "MPS", "mps": {"pinnedMemoryPerDevice": {"00": "1Gi"}}}
            ),
            "config[0].sharing.mps.pinnedMemoryPerDevice.00",
        ),
        (
            a_document(
                version=NVIDIA,
                sharing={
                    "strategy": "MPS",
                    "mpsConfig": {"defaultPerDevicePinnedMemoryLimit": {"gpu-0": "1Gi"}},
                },
            ),
            "config[0].sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit.gpu-0",
        ),
        (
            a_document(sharing={"strategy": "TimeSlicing", "mps": {}}),
            "config[0].sharing.mps: is not a field",
        ),
        (a_document(crossNamespace=True), "config[0].crossNamespace: is for DeviceClasses"),
        (
            a_document(
                version=NVIDIA,
                sharing={"strategy": "TimeSlicing", "mpsConfig": {"multiUser": True}},
            ),
            "config[0].sharing: strategy is TimeSlicing, and there is a body of the other one",
        ),
        (a_document("VfioDeviceConfig", NVIDIA), "config[0].kind: is 'VfioDeviceConfig'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(document: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.BadInput) as told:
        decode.config(document, "config[0]")
    assert words in str(told.value)


def test_a_class_may_let_namespaces_share() -> None:
    found = decode.config(a_document(crossNamespace=True), "class", from_class=True)
    assert found == v1alpha1.GpuConfig(crossNamespace=True)


def test_nvidias_time_slicing_reads_as_ours() -> None:
    theirs = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    ours = {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}
    found = decode.config(a_document(version=NVIDIA, sharing=theirs), "config[0]")
    assert found == decode.config(a_document(sharing=ours), "config[0]")


@pytest.mark.parametrize("body", [{}, {"timeSlicingConfig": {}}])
def test_nvidias_time_slicing_without_an_interval_is_the_default_one(body: dict[str, Any]) -> None:
    theirs = {"strategy": "TimeSlicing", **body}
    found = decode.config(a_document(version=NVIDIA, sharing=theirs), "config[0]")
    assert sharing(found) == v1alpha1.TimeSlicingSharing()


def test_nvidias_mps_reads_as_ours() -> None:
    theirs = {
        "strategy": "MPS",
        "mpsConfig": {
            "defaultActiveThreadPercentage": 50,
            "defaultPinnedDeviceMemoryLimit": "10Gi",
            "defaultPerDevicePinnedMemoryLimit": {"0": "5Gi"},
        },
    }
    found = sharing(decode.config(a_document(version=NVIDIA, sharing=theirs), "config[0]"))
    assert isinstance(found, v1alpha1.MpsSharing)
    assert found.mps == v1alpha1.Mps(
        activeThreadPercentage=50, pinnedMemory="10Gi", pinnedMemoryPerDevice={"0": "5Gi"}
    )


def test_time_slicing_of_a_mig_device_says_nothing() -> None:
    theirs = {"strategy": "TimeSlicing"}
    found = decode.config(a_document("MigDeviceConfig", NVIDIA, sharing=theirs), "config[0]")
    assert found == v1alpha1.MigDeviceConfig()


def doc(config: v1alpha1.Config, *requests: str) -> decode.Document:
    return decode.Document(config, "config[0]", requests)


def test_without_a_document_the_default_holds() -> None:
    assert decode.winner([], "main", "GpuConfig") == v1alpha1.GpuConfig()
    assert decode.winner([], "main", "MigDeviceConfig") == v1alpha1.MigDeviceConfig()


@pytest.mark.parametrize(
    ("requests", "wins"),
    [((), True), (("main",), True), (("main/sub",), True), (("other",), False)],
)
def test_the_last_document_that_names_the_request_wins(
    requests: tuple[str, ...], *, wins: bool
) -> None:
    first, last = v1alpha1.GpuConfig(), v1alpha1.GpuConfig()
    found = decode.winner([doc(first), doc(last, *requests)], "main/sub", "GpuConfig")
    assert (found is last) is wins


def test_a_document_for_all_requests_is_for_the_devices_it_suits() -> None:
    for_gpus = v1alpha1.GpuConfig(sharing=v1alpha1.TimeSlicingSharing())
    assert decode.winner([doc(for_gpus)], "main", "MigDeviceConfig") == v1alpha1.MigDeviceConfig()


def test_a_document_that_names_a_request_of_another_kind_is_refused() -> None:
    with pytest.raises(errors.BadInput) as told:
        decode.winner([doc(v1alpha1.GpuConfig(), "main")], "main", "MigDeviceConfig")
    assert str(told.value) == (
        "config[0].kind: is GpuConfig, and request main got a device for MigDeviceConfig; "
        "expected MigDeviceConfig"
    )
