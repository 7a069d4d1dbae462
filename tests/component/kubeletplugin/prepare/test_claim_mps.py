"""A claim's own MPS daemon: real pynvml, the supervisor's process, a simulated machine."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from driver import clock, names
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.kubeletplugin.prepare import mps_client
from tests.fakes import gpunode, loading, mpsnode, simulated_node, waiting
from tests.support.builders import allocated_claims

GIB = 1 << 30

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes, modes and MIG are root's")


@pytest.fixture(scope="module")
def supervised() -> Iterator[mpsnode.Node]:
    with mpsnode.machine() as base:
        created = mpsnode.Node(base)
        created.supervise()
        waiting.until(created.layout.run_dir.is_dir, mpsnode.WITHIN_S)
        yield created
        created.close()


@pytest.fixture
def node(supervised: mpsnode.Node) -> Iterator[simulated_node.SimulatedNode]:
    state = supervised.layout.lock.parent
    door = mps_client.MpsClient(state, mpsnode.BOOT_ID, clock.SystemClock())
    created = simulated_node.SimulatedNode(supervised.base, door)
    if not (created.at.driver_root / "dev/nvidia0").is_char_device():
        pytest.skip("this user may not make device nodes")
    yield created
    created.library.close()
    loading.forget()


def a_claim(
    node: simulated_node.SimulatedNode, *devices: str, kind: str, **settings: Any
) -> ports.ClaimRef:
    results = [
        allocated_claims.a_result(device, request=f"r{index}")
        for index, device in enumerate(devices)
    ]
    sharing = {"strategy": "MPS", "mps": settings}
    document = {"apiVersion": names.CONFIG_VERSION, "kind": kind, "sharing": sharing}
    claim = allocated_claims.an_allocated_claim(*results, configs=[document])
    node.reader.claims[claim.key] = claim
    return allocated_claims.a_ref()


def prepare(node: simulated_node.SimulatedNode, ref: ports.ClaimRef) -> gpunode.Process:
    process = node.process()
    answer = process.preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Prepared), answer
    return process


def what_a_container_gets(
    supervised: mpsnode.Node,
    node: simulated_node.SimulatedNode,
    ref: ports.ClaimRef,
    **more: str,
) -> dict[str, int]:
    """The limits by UUID, as a CUDA program says that has the claim's variables and pipe."""
    (path,) = node.cdi.iterdir()
    edits = json.loads(path.read_bytes())["devices"][0]["containerEdits"]
    words = dict(entry.split("=", 1) for entry in edits["env"])
    pipe = next(m["hostPath"] for m in edits["mounts"] if m["containerPath"] == "/tmp/nvidia-mps")
    assert pipe == str(supervised.layout.pipe(ref.uid))
    done = subprocess.run(
        [str(supervised.driver_root / "usr/bin/simclient")],
        env={**words, "CUDA_MPS_PIPE_DIRECTORY": pipe, **more},
        check=True,
        capture_output=True,
        text=True,
        timeout=mpsnode.WITHIN_S,
    )
    return {device["uuid"]: device["limit"] for device in json.loads(done.stdout)["devices"]}


def test_a_container_of_a_two_gpu_claim_has_both_with_their_limits(
    supervised: mpsnode.Node, node: simulated_node.SimulatedNode
) -> None:
    previous = node.gpus()
    wholes = sorted(previous[:2], key=lambda gpu: gpu.uuid)
    devices = [faces.device_name(gpu.pci) for gpu in previous[:2]]
    settings = {"pinnedMemory": "10Gi", "pinnedMemoryPerDevice": {"1": "5Gi"}}
    ref = a_claim(node, *devices, kind="GpuConfig", **settings)
    process = prepare(node, ref)
    limits = {wholes[0].uuid: 10 * GIB, wholes[1].uuid: 5 * GIB}
    assert what_a_container_gets(supervised, node, ref) == limits
    # As the workers of a launcher, each of which sees one of them.
    for index, gpu in enumerate(wholes):
        narrow = what_a_container_gets(supervised, node, ref, CUDA_VISIBLE_DEVICES=str(index))
        assert narrow == {gpu.uuid: limits[gpu.uuid]}
    assert process.preparer.unprepare(ref) is None
    assert (node.gpus(), node.files()) == (previous, [])
    assert not list(supervised.layout.status_dir.iterdir())


def test_a_container_of_a_claim_of_a_mig_device_has_it_with_its_limit(
    supervised: mpsnode.Node, node: simulated_node.SimulatedNode
) -> None:
    previous = node.gpus()
    part = f"{faces.device_name(previous[0].pci)}-mig-2g20gb-2"
    ref = a_claim(node, part, kind="MigDeviceConfig", pinnedMemory="5Gi")
    process = prepare(node, ref)
    (instance,) = node.parts().instances
    assert what_a_container_gets(supervised, node, ref) == {instance.uuid: 5 * GIB}
    assert process.preparer.unprepare(ref) is None
    assert (node.gpus(), node.files()) == (previous, [])
    assert not list(supervised.layout.status_dir.iterdir())
