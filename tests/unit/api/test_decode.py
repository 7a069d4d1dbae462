from typing import Any

import pytest

from driver import errors
from driver.api import decode, v1alpha1

VERSION = "resource.ration.dev/v1alpha1"
NVIDIA = "resource.nvidia.com/v1beta1"


def a_document(kind: str = "GpuConfig", version: str = VERSION, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, **fields}


def sharing(config: v1alpha1.Document) -> v1alpha1.Sharing | None:
    assert not isinstance(config, v1alpha1.SliceConfig)
    return config.sharing


def test_an_empty_configuration_is_the_device_as_it_is() -> None:
    assert decode.decode_config(a_document(), "config[0]") == v1alpha1.GpuConfig()
    decoded = decode.decode_config(a_document("MigDeviceConfig"), "config[0]")
    assert decoded == v1alpha1.MigDeviceConfig()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "config[0].apiVersion: is None; expected 'resource.ration.dev/v1alpha1' or"),
        (a_document(version="v1"), "config[0].apiVersion: is 'v1'"),
        (
            a_document("Gpu"),
            "config[0].kind: is 'Gpu'; expected one of GpuConfig, MigDeviceConfig, SliceConfig",
        ),
        (
            a_document("SliceConfig", NVIDIA),
            "config[0].kind: is 'SliceConfig'; expected one of GpuConfig, MigDeviceConfig",
        ),
        (a_document("SliceConfig", isolation="some"), "config[0].isolation"),
        (
            a_document("SliceConfig", sharing={}),
            "config[0].sharing: is not a field; expected one of apiVersion, isolation, kind",
        ),
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
def test_an_error_names_its_field(document: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.BadInput) as raised:
        decode.decode_config(document, "config[0]")
    assert words in str(raised.value)


@pytest.mark.parametrize("field", ["apiVersion", "kind", "sharing", "bogus"])
def test_a_deeply_nested_document_is_refused_briefly(field: str) -> None:
    value: object = 1
    for _ in range(900):
        value = [value]
    with pytest.raises(errors.BadInput) as raised:
        decode.decode_config({**a_document(), field: value}, "config[0]")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("field", ["\ud800", "apiVersion", "kind"])
def test_half_a_surrogate_pair_is_refused_in_words_that_can_be_sent(field: str) -> None:
    with pytest.raises(errors.BadInput) as raised:
        decode.decode_config({**a_document(), field: "\ud800"}, "config[0]")
    assert str(raised.value).encode()


def test_a_class_may_let_namespaces_share() -> None:
    decoded = decode.decode_config(a_document(crossNamespace=True), "class", from_class=True)
    assert decoded == v1alpha1.GpuConfig(crossNamespace=True)


def test_nvidias_time_slicing_reads_as_ours() -> None:
    theirs = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    ours = {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}
    decoded = decode.decode_config(a_document(version=NVIDIA, sharing=theirs), "config[0]")
    assert decoded == decode.decode_config(a_document(sharing=ours), "config[0]")


@pytest.mark.parametrize("body", [{}, {"timeSlicingConfig": {}}])
def test_nvidias_time_slicing_without_an_interval_is_the_default_one(body: dict[str, Any]) -> None:
    theirs = {"strategy": "TimeSlicing", **body}
    decoded = decode.decode_config(a_document(version=NVIDIA, sharing=theirs), "config[0]")
    assert sharing(decoded) == v1alpha1.TimeSlicingSharing()


def test_nvidias_mps_reads_as_ours() -> None:
    theirs = {
        "strategy": "MPS",
        "mpsConfig": {
            "defaultActiveThreadPercentage": 50,
            "defaultPinnedDeviceMemoryLimit": "10Gi",
            "defaultPerDevicePinnedMemoryLimit": {"0": "5Gi"},
        },
    }
    result = sharing(decode.decode_config(a_document(version=NVIDIA, sharing=theirs), "config[0]"))
    assert isinstance(result, v1alpha1.MpsSharing)
    assert result.mps == v1alpha1.Mps(
        activeThreadPercentage=50, pinnedMemory="10Gi", pinnedMemoryPerDevice={"0": "5Gi"}
    )


def test_time_slicing_of_a_mig_device_says_nothing() -> None:
    theirs = {"strategy": "TimeSlicing"}
    decoded = decode.decode_config(
        a_document("MigDeviceConfig", NVIDIA, sharing=theirs), "config[0]"
    )
    assert decoded == v1alpha1.MigDeviceConfig()


def doc(config: v1alpha1.Document, *requests: str) -> decode.Document:
    return decode.Document(config, "config[0]", requests)


def test_without_a_document_the_default_holds() -> None:
    assert decode.select_config([], "main", "GpuConfig") == v1alpha1.GpuConfig()
    assert decode.select_config([], "main", "MigDeviceConfig") == v1alpha1.MigDeviceConfig()


@pytest.mark.parametrize(
    ("requests", "wins"),
    [((), True), (("main",), True), (("main/sub",), True), (("other",), False)],
)
def test_the_last_document_that_names_the_request_wins(
    requests: tuple[str, ...], *, wins: bool
) -> None:
    first, last = v1alpha1.GpuConfig(), v1alpha1.GpuConfig()
    config = decode.select_config([doc(first), doc(last, *requests)], "main/sub", "GpuConfig")
    assert (config is last) is wins


def test_a_document_for_all_requests_is_for_the_devices_it_suits() -> None:
    for_gpus = v1alpha1.GpuConfig(sharing=v1alpha1.TimeSlicingSharing())
    assert (
        decode.select_config([doc(for_gpus)], "main", "MigDeviceConfig")
        == v1alpha1.MigDeviceConfig()
    )


def test_a_document_that_names_a_request_of_another_kind_is_refused() -> None:
    with pytest.raises(errors.BadInput) as raised:
        decode.select_config([doc(v1alpha1.GpuConfig(), "main")], "main", "MigDeviceConfig")
    assert str(raised.value) == (
        "config[0].kind: is GpuConfig, and request main got a device for MigDeviceConfig; "
        "expected MigDeviceConfig"
    )


BY_NEED = v1alpha1.SliceConfig(isolation="none")


def test_a_part_by_need_is_limited_in_each_process_at_least() -> None:
    decoded = decode.decode_config(a_document("SliceConfig"), "config[0]")
    assert decoded == v1alpha1.SliceConfig(isolation="limits")


def test_the_last_need_that_applies_to_a_request_wins() -> None:
    usual, other = v1alpha1.SliceConfig(), v1alpha1.SliceConfig(isolation="hardware")
    documents = [doc(usual, "main"), doc(BY_NEED), doc(other, "other")]
    assert decode.find_slice_config(documents, "main/sub") is BY_NEED
    assert decode.find_slice_config([doc(other, "other")], "main") is None


@pytest.mark.parametrize("requests", [(), ("main",)])
def test_requirements_of_a_part_are_no_setup(
    requests: tuple[str, ...],
) -> None:
    crossing = v1alpha1.GpuConfig(crossNamespace=True)
    documents = [doc(crossing, "main"), doc(BY_NEED, *requests)]
    assert decode.select_config(documents, "main", "GpuConfig", shared=True) is crossing
    assert decode.select_config(documents, "main", "MigDeviceConfig") == v1alpha1.MigDeviceConfig()


def test_a_whole_gpu_is_no_part_that_a_request_could_need() -> None:
    with pytest.raises(errors.BadInput, match=r"config\[0\].kind: is SliceConfig"):
        decode.select_config([doc(BY_NEED, "main")], "main", "GpuConfig")
    assert decode.select_config([doc(BY_NEED)], "main", "GpuConfig") == v1alpha1.GpuConfig()
    mistaken = [doc(BY_NEED), doc(v1alpha1.MigDeviceConfig(), "main")]
    with pytest.raises(errors.BadInput, match="is MigDeviceConfig"):
        decode.select_config(mistaken, "main", "GpuConfig")
