"""Tests of what containers are told of their devices, read by Kubernetes' own library for that."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from driver import ids
from driver.devices import model
from driver.kubeletplugin.cdi import device_metadata
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint
from driver.resources.sharing import compatibility
from tests.fakes import gpunode
from tests.support.builders import allocated_claims

GIB = 1 << 30
NAMES = (
    "gpu-0000-53-00-0",
    "gpu-0000-53-00-0-mig-1g10gb-4",
    "gpu-0000-53-00-0-mps",
    "gpu-0000-53-00-0-ts",
    "gpu-0000-53-00-0-monitor",
)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> model.Inventory:
    return gpunode.GpuNode(tmp_path_factory.mktemp("node")).nvml.inventory()


def a_device(inventory: model.Inventory, name: str, **more: Any) -> steps.PlannedDevice:
    return steps.PlannedDevice(
        "gpu",
        "node-1",
        ids.DeviceName(name),
        inventory.gpus[0].uuid,
        "a/b=c",
        steps.Edits(),
        **more,
    )


def a_record(*devices: steps.PlannedDevice, pod_claim: str = "") -> checkpoint.Record:
    state = checkpoint.State.STARTED
    return checkpoint.Record(
        allocated_claims.a_ref(), state, "boot", devices, (), pod_claim=pod_claim
    )


def read(built: Path, stream: bytes) -> Any:
    done = subprocess.run([built, "metadata"], input=stream, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_the_file_of_every_face_is_valid_in_both_versions(
    built: Path, inventory: model.Inventory
) -> None:
    record = a_record(*(a_device(inventory, name) for name in NAMES))
    stream = device_metadata.Renderer("gpu.ration.dev").render(record, "gpu", inventory)
    newest, oldest = stream.splitlines(keepends=True)
    result, old = read(built, stream), read(built, oldest)
    assert (result["version"], old["version"]) == ("v1beta1", "v1alpha1")
    assert read(built, newest) == result
    devices = result["metadata"]["requests"][0]["devices"]
    assert [device["name"] for device in devices] == list(NAMES)
    types = [device["attributes"]["type"]["string"] for device in devices]
    assert types == ["gpu", "mig", "gpu-share", "gpu-share", "gpu-monitor"]
    del result["metadata"]["apiVersion"], old["metadata"]["apiVersion"]
    assert result["metadata"] == old["metadata"]


def test_a_claim_of_a_template_and_a_chosen_alternative_are_named(
    built: Path, inventory: model.Inventory
) -> None:
    sharing_terms = compatibility.SharingTerms("time-slicing", "default", 10 * GIB, 12)
    device = a_device(inventory, NAMES[3], terms=sharing_terms, subrequest="small")
    stream = device_metadata.Renderer("gpu.ration.dev").render(
        a_record(device, pod_claim="mine"), "gpu", inventory
    )
    metadata = read(built, stream)["metadata"]
    assert metadata["metadata"]["uid"] == allocated_claims.UID
    assert metadata["podClaimName"] == "mine"
    (request,) = metadata["requests"]
    assert request["name"] == "gpu/small"
    attributes = request["devices"][0]["attributes"]
    assert attributes["memory"] == {"int": 10 * GIB}
    assert attributes["compute"] == {"int": 12}
    assert attributes["uuid"] == {"string": inventory.gpus[0].uuid}
