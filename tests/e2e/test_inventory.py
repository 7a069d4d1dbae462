"""Tests of GPUs that come and go, MIG made by hand and no driver, under a running plugin."""

import os
import subprocess
import sys
import time
from typing import Any

from driver.devices import faces
from driver.kube import client, gvr
from simulator import control
from tests.e2e import playground

NODE = "e2e-b"
WITHIN_S = 15.0
ABSENT_S = 60.0
PARTITION = """
import ctypes, sys, pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByUUID(sys.argv[1])
if sys.argv[2] == "make":
    assert pynvml.nvmlDeviceSetMigMode(gpu, 1) == pynvml.NVML_SUCCESS
    place = pynvml.c_nvmlGpuInstancePlacement_t(4, 4)
    made = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, ctypes.byref(place))
    pynvml.nvmlGpuInstanceCreateComputeInstance(made, 2)
else:
    made = pynvml.nvmlDeviceGetGpuInstanceById(gpu, int(sys.argv[3]))
    pynvml.nvmlComputeInstanceDestroy(pynvml.nvmlGpuInstanceGetComputeInstanceById(made, 0))
    pynvml.nvmlGpuInstanceDestroy(made)
    assert pynvml.nvmlDeviceSetMigMode(gpu, 0) == pynvml.NVML_SUCCESS
    sys.exit()
print(pynvml.nvmlGpuInstanceGetInfo(made).id)
"""


class Node:
    """The node's slices, and a pod that holds one of its GPUs throughout."""

    def __init__(self, field: playground.Playground) -> None:
        self.field = field
        field.create(playground.a_claim("held"))
        field.create(playground.a_pod("held", claims=("held",), nodeSelector=playground.on(NODE)))
        field.running("held")
        device = field.device_of("held")
        assert device is not None
        self.held = device[1]
        self.before = self.devices()
        self.started = (self._container(), field.cluster.pid("plugin", NODE))

    def devices(self) -> dict[str, Any]:
        """Every device of the node, by name, without what the server adds."""
        items = self.field.kube.list(gvr.RESOURCE_SLICES).items
        return {
            device["name"]: {**device, "taints": [taint["key"] for taint in device["taints"]]}
            for item in items
            if item["spec"]["nodeName"] == NODE
            for device in item["spec"].get("devices", ())
        }

    def _container(self) -> Any:
        (status,) = self.field.pod("held")["status"]["containerStatuses"]
        return status["containerID"], status["restartCount"]

    def gpu_of(self, device: str) -> dict[str, Any]:
        return {
            name: entry
            for name, entry in self.devices().items()
            if faces.gpu_name(name) == faces.gpu_name(device)
        }

    def a_free_gpu(self) -> str:
        return min(
            name
            for name, device in self.before.items()
            if device["attributes"]["type"]["string"] == "gpu" and name != self.held
        )

    def uuid_of(self, device: str) -> str:
        return str(self.before[device]["attributes"]["uuid"]["string"])

    def suffer(self, call: str, device: str) -> None:
        base = self.field.cluster.node_dir(NODE) / "gpu"
        control.send(base, call, self.uuid_of(device))

    def comes_to(self, expected: dict[str, Any], description: str) -> None:
        playground.until(lambda: self.devices() == expected, WITHIN_S, description)

    def check_undisturbed(self) -> None:
        """The pod and the plugin are the ones of before, and nothing else was touched."""
        assert (self._container(), self.field.cluster.pid("plugin", NODE)) == self.started


def test_a_gpu_that_goes_and_returns_takes_its_own_faces_only(
    field: playground.Playground,
) -> None:
    node = Node(field)
    gone = node.a_free_gpu()
    rest = {name: entry for name, entry in node.before.items() if faces.gpu_name(name) != gone}
    node.suffer("remove", gone)
    playground.until(lambda: node.devices().keys() == rest.keys(), WITHIN_S, "they are withdrawn")
    peers = {"attributes": {"nvlinkPeers": 0}}  # one neighbour less
    assert {name: _but(device, peers) for name, device in node.devices().items()} == {
        name: _but(entry, peers) for name, entry in rest.items()
    }
    node.suffer("restore", gone)
    node.comes_to(node.before, "its faces are back")
    node.check_undisturbed()


def _but(device: dict[str, Any], other: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {**device, **{key: {**device[key], **more} for key, more in other.items()}}


def test_a_gpu_in_use_that_goes_is_kept_for_its_claim_and_marked(
    field: playground.Playground,
) -> None:
    node = Node(field)
    node.suffer("remove", node.held)

    def marked() -> bool:
        left = node.gpu_of(node.held)
        return list(left) == [node.held] and "ration.dev/withdrawn" in left[node.held]["taints"]

    playground.until(marked, WITHIN_S, "only the held face is left, and marked")
    retained, previous = node.gpu_of(node.held)[node.held], node.before[node.held]
    assert {**retained, "taints": 0} == {**previous, "taints": 0}
    node.suffer("restore", node.held)
    node.comes_to(node.before, "all faces are back")
    node.check_undisturbed()


def test_mig_made_by_hand_is_adopted_and_what_it_overlaps_is_withdrawn(
    field: playground.Playground,
) -> None:
    node = Node(field)
    cut = node.a_free_gpu()
    hand = _by_hand(field, node.uuid_of(cut), "make")
    adopted = f"{cut}-mig-3g40gb-4"
    playground.until(lambda: "uuid" in node.devices()[adopted]["attributes"], WITHIN_S, "adopted")
    shown = node.gpu_of(cut)
    assert not {cut, f"{cut}-mps", f"{cut}-ts", f"{cut}-mig-7g80gb-0"} & shown.keys()
    assert f"{cut}-mig-3g40gb-0" in shown
    assert f"{cut}-mig-1g10gb-5" not in shown
    others = {
        name: device for name, device in node.devices().items() if faces.gpu_name(name) != cut
    }
    assert others.items() <= node.before.items()
    _by_hand(field, node.uuid_of(cut), "destroy", hand)
    node.comes_to(node.before, "all faces are back")
    node.check_undisturbed()


def _by_hand(field: playground.Playground, *arguments: str) -> str:
    """Somebody else's program, with the driver's library and no part of ours."""
    root = field.cluster.node_dir(NODE) / "gpu" / "driver-root"
    (library,) = root.glob("usr/lib/*/libnvidia-ml.so.1")
    done = subprocess.run(
        [sys.executable, "-c", PARTITION, *arguments],
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_the_driver_for_a_minute_only_what_is_held_is_published(
    field: playground.Playground, kube: client.KubeClient
) -> None:
    node = Node(field)
    assert kube is field.kube
    field.cluster.stop("gpu", NODE)
    try:
        playground.until(lambda: list(node.devices()) == [node.held], WITHIN_S, "only what is held")
        absent_until = time.monotonic() + ABSENT_S
        while time.monotonic() < absent_until:
            assert list(node.devices()) == [node.held]
            time.sleep(1)
    finally:
        field.cluster.start("gpu", NODE)
    playground.until(lambda: node.devices() == node.before, 30, "everything is back")
    node.check_undisturbed()
