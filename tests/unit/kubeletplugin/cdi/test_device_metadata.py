import dataclasses
import json
import shutil
from typing import Any

import pytest

from driver import errors, ids
from driver.devices import mig
from driver.kubeletplugin.cdi import device_metadata
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint
from driver.resources.dra import claims
from driver.resources.sharing import compatibility
from tests.fakes import gpunode
from tests.support.builders import allocated_claims

GIB = 1 << 30
DRIVER = "gpu.ration.dev"
SHARE = "gpu-0000-53-00-0-ts"
FOLDER = "/var/run/kubernetes.io/dra-device-attributes"


def a_device(
    node: gpunode.GpuNode, name: str = "gpu-0000-53-00-0", request: str = "gpu", **more: Any
) -> steps.PlannedDevice:
    gpu = node.nvml.inventory().gpus[0].uuid
    cdi = f"{gpunode.KIND}={name}"
    return steps.PlannedDevice(
        request, allocated_claims.NODE, ids.DeviceName(name), gpu, cdi, steps.Edits((gpu,)), **more
    )


def a_record(*devices: steps.PlannedDevice, **more: Any) -> checkpoint.Record:
    state = checkpoint.State.STARTED
    return checkpoint.Record(allocated_claims.a_ref(), state, "boot", devices, (), **more)


def told(node: gpunode.GpuNode, device: steps.PlannedDevice) -> dict[str, Any]:
    """The attributes that a container reads of one device."""
    data = device_metadata.Renderer(DRIVER).render(a_record(device), "gpu", node.nvml.inventory())
    (request,) = json.loads(data.splitlines()[0])["requests"]
    attributes: dict[str, Any] = request["devices"][0]["attributes"]
    return attributes


def test_a_claim_by_name_and_one_of_a_template_have_their_own_places() -> None:
    record = a_record()
    named = device_metadata.container_path(record, "gpu", DRIVER)
    assert named == f"{FOLDER}/resourceclaims/one/gpu/gpu.ration.dev-metadata.json"
    container_path = device_metadata.container_path(a_record(pod_claim="mine"), "gpu", DRIVER)
    assert (
        container_path == f"{FOLDER}/resourceclaimtemplates/mine/gpu/gpu.ration.dev-metadata.json"
    )


def test_a_share_says_what_the_claim_was_given_of_the_gpu(node: gpunode.GpuNode) -> None:
    sharing_terms = compatibility.SharingTerms("time-slicing", "default", 12 * GIB, 15)
    result = told(node, a_device(node, SHARE, terms=sharing_terms))
    assert (result["memory"], result["compute"]) == ({"int": 12 * GIB}, {"int": 15})
    assert result["sharing"] == {"string": "time-slicing"}


def test_a_whole_gpu_and_a_part_say_how_large_they_are(node: gpunode.GpuNode) -> None:
    gpu = node.nvml.inventory().gpus[0]
    whole = told(node, a_device(node))
    assert (whole["memory"], whole["compute"]) == ({"int": gpu.memory_bytes}, {"int": 100})
    part = told(node, a_device(node, "gpu-0000-53-00-0-mig-1g10gb-4"))
    assert 9 * GIB < part["memory"]["int"] < 11 * GIB
    assert part["compute"]["int"] < 100


def test_attributes_only_for_allocators_are_left_out(node: gpunode.GpuNode) -> None:
    assert "allocator" not in told(node, a_device(node))


def test_a_gpu_that_is_not_there_has_a_name_and_nothing_else(node: gpunode.GpuNode) -> None:
    gone = steps.PlannedDevice(
        "gpu", "node", ids.DeviceName("gpu-x"), ids.GpuUuid("GPU-x"), "a/b=c", steps.Edits()
    )
    assert told(node, gone) == {}


def test_the_first_device_of_a_request_brings_its_file_and_no_other_does(
    node: gpunode.GpuNode,
) -> None:
    results = [
        allocated_claims.a_result("gpu-0000-53-00-0", request="two"),
        allocated_claims.a_result("gpu-0000-86-00-0", request="two"),
        allocated_claims.a_result("gpu-0000-97-00-0", request="either/second"),
    ]
    ref = node.allocate(allocated_claims.an_allocated_claim(*results))
    node.process().preparer.prepare(ref, gpunode.never)
    spec = json.loads(node.spec_path().read_bytes())
    mounts = {
        device["name"]: [
            mount["containerPath"] for mount in device["containerEdits"].get("mounts", [])
        ]
        for device in spec["devices"]
    }
    brought = [path.split("/")[-2] for paths in mounts.values() for path in paths]
    assert sorted(brought) == ["either", "two"]
    assert len(mounts) == 3


def test_the_pods_own_name_for_the_claim_is_kept_for_the_next_process(
    node: gpunode.GpuNode,
) -> None:
    claim = claims.parse(
        {
            "metadata": {
                "namespace": "default",
                "name": "one",
                "uid": allocated_claims.UID,
                "annotations": {"resource.kubernetes.io/pod-claim-name": "mine"},
            },
            "spec": {"devices": {}},
        }
    )
    assert claim.pod_claim == "mine"
    ref = node.allocate(
        dataclasses.replace(allocated_claims.an_allocated_claim(), pod_claim="mine")
    )
    node.process().preparer.prepare(ref, gpunode.never)
    node.spec_path().unlink()
    node.process().recover()
    assert f"{FOLDER}/resourceclaimtemplates/mine/gpu/" in node.spec_path().read_text()


def test_an_instance_is_told_by_the_uuid_that_it_was_made_with(node: gpunode.GpuNode) -> None:
    name = "gpu-0000-53-00-0-mig-1g10gb-4"
    ref = node.allocate(allocated_claims.an_allocated_claim(allocated_claims.a_result(name)))
    process = node.process()
    process.preparer.prepare(ref, gpunode.never)
    (instance,) = _mig(node).instances
    (path,) = node.told.rglob("*.json")
    text = path.read_text()
    assert instance.uuid is not None
    assert instance.uuid in text


@pytest.mark.parametrize("name", ["../x", "a/b", "", "UP", "a..b", "a\0b", "-a", "a" * 300])
def test_a_name_that_is_no_name_of_kubernetes_never_becomes_a_path(
    node: gpunode.GpuNode, name: str
) -> None:
    claim = dataclasses.replace(allocated_claims.an_allocated_claim(), name=name)
    ref = node.allocate(claim)
    with pytest.raises(errors.BadInput, match="mounts"):
        node.process().preparer.prepare(ref, gpunode.never)
    assert node.files() == {}


@pytest.mark.parametrize("lost", ["spec", "told"])
def test_missing_files_of_a_claim_are_created_again(node: gpunode.GpuNode, lost: str) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    answer = node.process().preparer.prepare(ref, gpunode.never)
    previous = node.files()
    if lost == "spec":
        node.spec_path().unlink()
    else:
        shutil.rmtree(node.told)
    assert node.process().preparer.prepare(ref, gpunode.never) == answer
    assert node.files() == previous


def test_metadata_of_a_claim_without_a_record_is_removed(node: gpunode.GpuNode) -> None:
    gpunode.write(node.told / allocated_claims.OTHER_UID / ".gpu.json.new", "torn")
    assert node.process().recover().orphans == [allocated_claims.OTHER_UID]
    assert node.files() == {}


def _mig(node: gpunode.GpuNode) -> mig.Mig:
    result = node.nvml.inventory().gpus[0].mig
    assert result is not None
    return result
