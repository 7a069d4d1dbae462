"""Installed as gpu.nvidia.com: manifests shaped as NVIDIA's examples run unchanged (D13).

`nvidia/` holds one manifest for each shape of the quickstart of NVIDIA's own DRA driver. The driver
is installed under another name here, so it has a cluster to itself.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import errors, names
from driver.kube import client, gvr
from hack.chart import helm
from hack.cluster import api, chart, layout
from hack.cluster import errors as cluster_errors
from simulator import codes
from simulator import store as machines
from tests.e2e import playground
from tests.e2e.conftest import ROOT, hack

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
WHERE = layout.Layout(ROOT)
NAME = "gpu.nvidia.com"
MANIFESTS = Path(__file__).with_name("nvidia")
GIB = 1 << 30
MIG_IS_ON = range(4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    """One node of eight A100 of 40 GB, as NVIDIA's examples suppose; Ration by NVIDIA's name."""
    try:
        api.Cluster.load(ROOT)
    except cluster_errors.ClusterError:
        pass
    else:
        pytest.skip("a cluster is up, with the driver by its own name: make cluster-down")
    hack("up", "--nodes", "1", "--machine", "dgx-a100", "--controllers", "2", "--driver", "pods")
    try:
        load = api.Cluster.load(ROOT)
        chart.run(WHERE, "uninstall", helm.RELEASE, f"--namespace={helm.NAMESPACE}", "--wait")
        turn_mig_on(load)
        chart.install(WHERE, f"--set=driverName={NAME}", "--set=controller.replicas=2")
        playground.until(lambda: published(load), 60, f"slices of {NAME}")
        yield load
    finally:
        hack("down")


def turn_mig_on(cluster: api.Cluster) -> None:
    """On half of the GPUs, as NVIDIA's examples are to find them: Ampere's mode takes a reset."""
    (node,) = cluster.nodes()
    machine = cluster.node_dir(node) / "gpu"
    for number in map(str, MIG_IS_ON):
        smi = (str(machine / "driver-root/usr/bin/nvidia-smi"), "-i", number, "-mig", "1")
        subprocess.run(smi, check=True)
        reset = ("-m", "simulator", "clear", str(machine), "--gpu", number)
        subprocess.run((sys.executable, *reset), cwd=ROOT, check=True)


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    ground = a_field(cluster)
    try:
        yield ground
    finally:
        ground.close()


other_field = field


def a_field(cluster: api.Cluster) -> playground.Playground:
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    return playground.Playground.open(cluster, kube)


def published(cluster: api.Cluster) -> list[Any]:
    """Every device that is published, by any driver."""
    slices = json.loads(cluster.kubectl("get", "resourceslices", "--output=json"))["items"]
    assert {slice_["spec"]["driver"] for slice_ in slices} <= {NAME}
    return [device for slice_ in slices for device in slice_["spec"].get("devices", ())]


class Example:
    """One manifest, applied as it stands."""

    def __init__(self, cluster: api.Cluster, name: str) -> None:
        self._cluster = cluster
        self._file = str(MANIFESTS / f"{name}.yaml")
        self._namespace = f"nvidia-{name.replace('_', '-')}"

    def apply(self, pods: int) -> list[str]:
        """Apply it, and wait until so many pods run; their names."""
        self._cluster.kubectl("apply", "--filename", self._file)
        playground.until(lambda: len(self._running()) == pods, 90, f"{pods} pods of it run")
        return self._running()

    def _running(self) -> list[str]:
        query = ("get", "pods", "-n", self._namespace, "--output=json")
        pods = json.loads(self._cluster.kubectl(*query))["items"]
        return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]

    def said(self, pod: str, container: str = "main") -> str:
        """Return what a container printed."""
        query = ("logs", "-n", self._namespace, pod, "-c", container)
        return playground.until(
            lambda: self._cluster.kubectl(*query), 20, f"{pod} {container} says what it sees"
        )

    def sees(self, pod: str, container: str = "main") -> Any:
        """Return what the stand-in for a CUDA program found in a container."""
        return json.loads(self.said(pod, container).splitlines()[0])

    def listed(self, pod: str, container: str = "main") -> list[str]:
        """The whole GPUs that nvidia-smi lists in a container."""
        return re.findall(
            r"^GPU \d.*UUID: (GPU-[0-9a-f-]+)", self.said(pod, container), re.MULTILINE
        )

    def delete(self) -> None:
        """Delete it; its devices are free when this returns."""
        self._cluster.kubectl("delete", "--filename", self._file, "--wait", "--timeout=90s")


@pytest.fixture
def example(cluster: api.Cluster, request: pytest.FixtureRequest) -> Iterator[Example]:
    """The manifest that the test's parameter names."""
    result = Example(cluster, request.param)
    try:
        yield result
    finally:
        result.delete()
        assert {(board.compute_mode, board.timeslice) for board in boards(cluster).values()} == {
            (codes.ComputeMode.DEFAULT, codes.Timeslice.DEFAULT)
        }


def manifest(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("example", [name], indirect=True)


def boards(cluster: api.Cluster) -> dict[str, Any]:
    """The simulated GPUs as they are now, by UUID."""
    (node,) = cluster.nodes()
    machine = machines.load(cluster.node_dir(node) / "gpu")
    return {gpu.uuid: machine.board(gpu) for gpu in machine.gpus}


def uuids(seen: Any) -> list[str]:
    return [device["uuid"] for device in seen["devices"]]


def test_devices_are_nvidias_and_only_the_controller_gives_them(cluster: api.Cluster) -> None:
    results = published(cluster)
    assert (
        len([result for result in results if result["attributes"]["type"] == {"string": "gpu"}])
        == 4
    )
    assert all(
        "ration.dev/allocator" in [taint["key"] for taint in result["taints"]] for result in results
    )
    classes = cluster.kubectl("get", "deviceclasses", "--output=name").split()
    stems = ("gpu", "mig", "gpu-mps", "gpu-timeslice", "gpu-slice")
    expected = {f"deviceclass.resource.k8s.io/{stem}.nvidia.com" for stem in stems}
    assert set(classes) == expected


@manifest("two_pods")
def test_two_pods_have_a_whole_gpu_each(example: Example) -> None:
    first, second = (example.listed(pod) for pod in example.apply(2))
    assert len(first) == len(second) == 1
    assert first != second


@manifest("two_containers")
def test_two_containers_of_a_pod_share_a_claim(example: Example) -> None:
    (pod,) = example.apply(1)
    left, right = (example.listed(pod, container) for container in ("left", "right"))
    assert len(left) == 1
    assert left == right


@manifest("one_claim")
def test_two_pods_share_a_claim(example: Example) -> None:
    first, second = (example.listed(pod) for pod in example.apply(2))
    assert len(first) == 1
    assert first == second


@manifest("selected")
def test_selectors_on_nvidias_attributes_find_two_gpus(example: Example) -> None:
    (pod,) = example.apply(1)
    assert len(set(example.listed(pod))) == 2


@manifest("parts")
def test_four_pods_have_four_mig_devices_each_of_one_gpu(
    cluster: api.Cluster, example: Example
) -> None:
    profiles = {"one": "1g.5gb", "another": "1g.5gb", "two": "2g.10gb", "three": "3g.20gb"}
    pods = example.apply(4)
    parents, parts = [], set()
    for pod in pods:
        of_pod = set()
        for container, profile in profiles.items():
            message = example.said(pod, container)
            ((listed, uuid),) = re.findall(r"MIG (\S+) .*UUID: (MIG-[0-9a-f-]+)", message)
            assert listed == profile
            parts.add(uuid)
            of_pod.update(example.listed(pod, container))
        (parent,) = of_pod
        parents.append(parent)
    assert len(set(parents)) == len(pods)
    assert len(parts) == len(pods) * len(profiles)
    whole = {uuid: board for uuid, board in boards(cluster).items() if board.instances}
    assert set(whole) == set(parents)


@manifest("two_strategies")
def test_a_claim_has_one_gpu_in_turns_and_one_by_mps(
    cluster: api.Cluster, example: Example
) -> None:
    (pod,) = example.apply(1)
    turns = [example.sees(pod, name) for name in ("turn", "other-turn")]
    clients = [example.sees(pod, name) for name in ("client", "other-client")]
    (in_turns,) = {uuid for seen in turns for uuid in uuids(seen)}
    (by_mps,) = {uuid for seen in clients for uuid in uuids(seen)}
    assert in_turns != by_mps
    assert [(seen["mps"], seen["allocated"]) for seen in turns] == [(None, 4 * GIB)] * 2
    assert [seen["mps"]["threadPercentage"] for seen in clients] == [50, 50]
    assert [seen["devices"][0]["limit"] for seen in clients] == [10 * GIB] * 2
    assert len({seen["mps"]["server"] for seen in clients}) == 1
    now = boards(cluster)
    assert (now[in_turns].timeslice, now[by_mps].timeslice) == (
        codes.Timeslice.LONG,
        codes.Timeslice.DEFAULT,
    )
    assert now[in_turns].compute_mode == codes.ComputeMode.DEFAULT
    assert now[by_mps].compute_mode == codes.ComputeMode.EXCLUSIVE_PROCESS


@manifest("mps_across_pods")
def test_three_pods_are_clients_of_one_mps_server(example: Example) -> None:
    seen = [example.sees(pod) for pod in example.apply(3)]
    assert len({uuid for entry in seen for uuid in uuids(entry)}) == 1
    assert len({entry["mps"]["server"] for entry in seen}) == 1
    assert [entry["mps"]["threadPercentage"] for entry in seen] == [25] * 3
    assert [entry["allocated"] for entry in seen] == [5 * GIB] * 3


@manifest("part_by_mps")
def test_two_containers_share_a_mig_device_by_mps(example: Example) -> None:
    (pod,) = example.apply(1)
    seen = [example.sees(pod, name) for name in ("left", "right")]
    assert len({uuid for entry in seen for uuid in uuids(entry)}) == 1
    assert len({entry["mps"]["server"] for entry in seen}) == 1
    assert [entry["allocated"] for entry in seen] == [4 * GIB] * 2


def test_a_config_that_is_wrong_is_refused_at_once(field: playground.Playground) -> None:
    claim = playground.a_claim("odd", deviceClassName=NAME)
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "Turns"},
    }
    claim["spec"]["devices"]["config"] = [{"opaque": {"driver": NAME, "parameters": parameters}}]
    with pytest.raises(errors.ApiError, match="strategy"):
        field.create(claim)


def test_a_claim_that_tolerates_the_allocator_taint_is_refused(
    field: playground.Playground,
) -> None:
    toleration = {"key": "ration.dev/allocator", "operator": "Exists"}
    with pytest.raises(errors.Invalid, match="may not tolerate the device taint"):
        field.create(playground.a_claim("sly", deviceClassName=NAME, tolerations=[toleration]))


def test_shares_of_two_namespaces_are_of_two_gpus(
    field: playground.Playground, other_field: playground.Playground
) -> None:
    amount = {"requests": {"memory": "4Gi"}}
    of_mps = "gpu-mps.nvidia.com"
    placed = {}
    for ground, of_it in ((field, ("a", "b")), (other_field, ("c",))):
        for name in of_it:
            claim = playground.a_claim(name, deviceClassName=of_mps, capacity=amount)
            ground.create(claim, a_pod(name, claims=(name,), command="exec sleep 3600"))
            ground.running(name)
            placed[name] = ground.device_of(name)
    assert placed["a"] == placed["b"]
    assert placed["c"] != placed["a"]


def test_device_plugin_requests_are_converted_to_nvidias_classes(
    field: playground.Playground,
) -> None:
    for name, question in (("whole", "nvidia.com/gpu"), ("part", "nvidia.com/mig-1g.5gb")):
        field.create(as_for_a_plugin(name, question))
    for name in ("whole", "part"):
        field.running(name)
        assert field.uuids(name)
    requests = [
        request["exactly"]["deviceClassName"]
        for claim in field.claims()
        for request in claim["spec"]["devices"]["requests"]
    ]
    assert sorted(requests) == [NAME, "mig.nvidia.com"]


def test_converted_pods_are_gated_too(cluster: api.Cluster) -> None:
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube, **{names.GATE_LABEL: "true"})
    try:
        pod = as_for_a_plugin("whole", "nvidia.com/gpu")
        answer = kube.create(gvr.PODS, pod, ground.namespace)
        assert answer["spec"]["schedulingGates"] == [{"name": names.ALLOCATION_GATE}]
        assert "schedulingGates" not in ground.running("whole")["spec"]
    finally:
        ground.close()


def as_for_a_plugin(name: str, question: str) -> dict[str, Any]:
    """A pod that asks a device plugin for one device, without a claim."""
    pod = a_pod(name)
    del pod["spec"]["resourceClaims"]
    pod["spec"]["containers"][0]["resources"] = {"limits": {question: "1"}}
    return pod


def a_pod(name: str, **more: Any) -> dict[str, Any]:
    """A pod of any node."""
    return playground.a_pod(name, **{"nodeSelector": {}, "tolerations": [], **more})
