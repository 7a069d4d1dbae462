"""Promises of the heads of the files in examples/shapes, one function a file."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from simulator import codes
from simulator import store as machines
from tests.e2e import manifest

T = TypeVar("T")
GIB = 1 << 30
Attributes = Mapping[str, Any]
Published = Mapping[tuple[str, str], Attributes]
"""The attributes of devices, by node and name."""
Given = Mapping[str, manifest.Told]
"""What the events say, by pod."""


def gpus(source: manifest.Manifest, pod: str, container: str) -> list[str]:
    """The GPUs that nvidia-smi listed in a container."""
    return re.findall(r"^GPU \d.*UUID: (GPU-[0-9a-f-]+)", source.said(pod, container), re.MULTILINE)


def the_only(values: Iterable[T]) -> T:
    """Return what several are, all of them alike."""
    results = set(values)
    assert len(results) == 1, results
    return results.pop()


def eight_whole_gpus_that_nvlink_joins(
    _shape: manifest.Manifest, fields: Given, published: Published
) -> None:
    ((pod, reported),) = fields.items()
    assert pod.startswith("training-")
    assert [device.kind for device in reported.devices] == ["whole"] * 8
    masks = [published[reported.node, device.name]["nvlinkPeers"] for device in reported.devices]
    assert masks == [0b11111111 ^ (1 << own) for own in range(8)]
    assert "8 GPUs connected by NVLink" in reported.why


def three_parts_of_one_gpu(shape: manifest.Manifest, fields: Given, published: Published) -> None:
    assert len(fields) == 3
    parts = [(field.node, device.name) for field in fields.values() for device in field.devices]
    assert len(set(parts)) == 3
    assert the_only(published[part]["profile"] for part in parts) == "2g.20gb"
    the_only(published[part]["parentUUID"] for part in parts)
    seen = [shape.sees(pod, "server")["devices"] for pod in fields]
    assert all(len(devices) == 1 for devices in seen)
    assert len({device["uuid"] for (device,) in seen}) == 3
    assert all(19 * GIB < device["allocated"] < 20 * GIB for (device,) in seen)


def turns_on_one_gpu(shape: manifest.Manifest, fields: Given, _published: Published) -> None:
    assert sorted(fields) == ["notebook-0", "notebook-1", "notebook-2"]
    node = the_only(field.node for field in fields.values())
    device = the_only(device.name for field in fields.values() for device in field.devices)
    uuid = the_only(uuid for pod in fields for uuid in gpus(shape, pod, "jupyter"))
    for pod, entry in fields.items():
        assert [(device.kind, device.amounts["memory"]) for device in entry.devices] == [
            ("time-slicing", "8Gi")
        ]
        key = device.upper().replace("-", "_")
        assert f"RATION_{key}=memory={8 * GIB}," in shape.said(pod, "jupyter")
        assert shape.sees(pod, "jupyter")["mps"] is None
    machine = machines.load(shape.cluster.node_dir(node) / "gpu")
    assert machine.board(machine.find(uuid)).timeslice == codes.Timeslice.LONG


def draft_and_target_on_one_gpu(
    shape: manifest.Manifest, fields: Given, _published: Published
) -> None:
    (field,) = fields.values()
    assert [device.amounts["memory"] for device in field.devices] == ["8Gi", "56Gi"]
    the_only(device.name for device in field.devices)
    for container, (gib, percent) in {"draft": (8, 20), "target": (56, 80)}.items():
        seen = shape.sees("speculative", container)
        (device,) = seen["devices"]
        assert (device["limit"], device["allocated"]) == (gib * GIB, gib * GIB)
        assert seen["mps"]["threadPercentage"] == percent
        assert [device["uuid"]] == gpus(shape, "speculative", container)


def teacher_and_student_on_one_gpu(
    shape: manifest.Manifest, fields: Given, _published: Published
) -> None:
    ((pod, reported),) = fields.items()
    the_only(device.name for device in reported.devices)
    the_only(uuid for entry in ("teacher", "student") for uuid in gpus(shape, pod, entry))
    limits = {entry: limited(shape, pod, entry) for entry in ("teacher", "student")}
    assert limits == {"teacher": ("49152M", "30"), "student": ("24576M", "70")}


def eight_small_jobs_on_one_gpu(
    shape: manifest.Manifest, fields: Given, _published: Published
) -> None:
    assert len(fields) == 8
    the_only((field.node, device.name) for field in fields.values() for device in field.devices)
    assert the_only(limited(shape, pod, "work") for pod in fields) == ("6144M", "10")


def limited(source: manifest.Manifest, pod: str, container: str) -> tuple[str, str]:
    """The memory and percentage that a container's clients are held to."""
    message = source.said(pod, container)
    memory = re.findall(r"^CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=(\w+)$", message, re.MULTILINE)
    percent = re.findall(r"^CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=(\w+)$", message, re.MULTILINE)
    return the_only(memory), the_only(percent)


def an_h100_where_there_is_one(
    shape: manifest.Manifest, fields: Given, published: Published
) -> None:
    ((_, reported),) = fields.items()
    assert [device.kind for device in reported.devices] == ["whole"]
    assert published[reported.node, reported.devices[0].name]["productName"].startswith(
        "NVIDIA H100"
    )
    assert alternatives(shape) == ["gpu/h100"]


def gpus_with_fp8(_shape: manifest.Manifest, fields: Given, published: Published) -> None:
    assert len(fields) == 2
    for field in fields.values():
        (device,) = field.devices
        assert capability(published[field.node, device.name]) >= (8, 9)


def hopper_and_a_share_of_ampere_or_newer(
    shape: manifest.Manifest, fields: Given, published: Published
) -> None:
    third, second = (
        next((pod, field) for pod, field in fields.items() if pod.startswith(job))
        for job in ("flash-3-", "flash-2-")
    )
    for (_, entry), kind in ((third, "whole"), (second, "mps")):
        assert [device.kind for device in entry.devices] == [kind]
    results = [published[item.node, item.devices[0].name] for _, item in (third, second)]
    assert capability(results[0]) == (9, 0)
    assert capability(results[1]) >= (8, 0)
    assert limited(shape, second[0], "main") == ("16384M", "50")


def capability(attributes: Attributes) -> tuple[int, int]:
    major, minor, _ = attributes["cudaComputeCapability"].split(".")
    return int(major), int(minor)


def alternatives(source: manifest.Manifest) -> list[str]:
    """The requests that the only claim's devices are of."""
    (claim,) = source.claims()
    return [result["request"] for result in claim["status"]["allocation"]["devices"]["results"]]


Promise = Callable[[manifest.Manifest, Given, Published], None]
PROMISES: Mapping[str, Promise] = {
    "training-8-nvlink": eight_whole_gpus_that_nvlink_joins,
    "inference-mig": three_parts_of_one_gpu,
    "notebook": turns_on_one_gpu,
    "speculative-decoding": draft_and_target_on_one_gpu,
    "distillation": teacher_and_student_on_one_gpu,
    "batch": eight_small_jobs_on_one_gpu,
    "first-available": an_h100_where_there_is_one,
    "low-precision": gpus_with_fp8,
    "attention-kernels": hopper_and_a_share_of_ampere_or_newer,
}
