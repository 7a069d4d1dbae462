"""Sixty manifests over two drivers, under kube-scheduler and then under our controller.

Whoever allocates, each ends the same: as many pods run, with as many devices of each driver, of
which no two pods have the same. What only the controller does follows: gangs, queues, preemption.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from driver import names
from driver.kube import client, gvr
from hack.cluster import api, chart
from tests.e2e import joint_manifests, managed_devices, other_drivers, playground, release
from tests.fakes.nic_driver import driver as nic_driver
from tests.fakes.nic_driver import pools
from tests.support.builders import joint_claims as joint
from tests.support.builders import objects

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]
cluster = release.cluster
Raw = dict[str, Any]
MANAGED = managed_devices.managed(pools.DRIVER)
WITHIN_S, PENDING_S = 40.0, 6.0
"""Until all pods of a manifest run; and how long the others are watched."""
FABRIC = pools.Pool(
    joint_manifests.FABRIC,
    tuple(pools.Nic(f"far-{number}", attributes={"fabric": True}) for number in range(2)),
    {"allNodes": True},
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Pods that run, and the number of devices allocated by driver."""

    running: int
    devices: tuple[tuple[str, int], ...]


@pytest.fixture(scope="module")
def kube(cluster: api.Cluster) -> client.KubeClient:
    """The client of the tests."""
    return client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")


@pytest.fixture(scope="module")
def nics(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[nic_driver.NicDriver]:
    """NICs of every kind on each node, and two devices that every node reaches."""
    managed_devices.require_rules(cluster)
    with nic_driver.NicDriver(kube) as running:
        for node in cluster.nodes():
            running.serve(node, cluster.node_dir(node))
            gpus = other_drivers.published(kube, names.DRIVER, node)
            bandwidth = {"value": "100G", "requestPolicy": {"default": "10G"}}
            extra = (
                pools.Nic(
                    "nic-s",
                    attributes={"shared": True},
                    capacity={"bandwidth": bandwidth},
                    shared=True,
                ),
                pools.Nic(
                    "nic-t",
                    attributes={"tainted": True},
                    taints=({"key": "example.com/repair", "effect": "NoSchedule"},),
                ),
            )
            near = pools.beside(gpus)
            running.publish(pools.Pool(node, (*near, *extra)))
        running.publish(FABRIC)
        yield running


@pytest.fixture(scope="module")
def theirs(
    cluster: api.Cluster, kube: client.KubeClient, nics: nic_driver.NicDriver
) -> dict[str, Outcome]:
    """Return the outcome of each manifest while kube-scheduler allocates."""
    assert nics.name == pools.DRIVER
    release.install("--set=allocator=scheduler")
    playground.until(lambda: not gpu_taints(kube), 120, "kube-scheduler allocates our GPUs")
    return {
        manifest.name: outcome(cluster, kube, manifest, manifest.runs)
        for manifest in joint_manifests.manifests()
    }


@pytest.fixture(scope="module")
def managed(theirs: dict[str, Outcome], kube: client.KubeClient) -> Iterator[dict[str, Outcome]]:
    """The controller allocates both drivers' devices; yield what kube-scheduler made of them."""
    release.install(MANAGED)
    allocator = {names.ALLOCATOR_TAINT}
    playground.until(lambda: gpu_taints(kube) == allocator, 120, "the controller has our GPUs")
    playground.until(lambda: rule_taint(kube) in allocator, 120, "the controller has the NICs")
    yield theirs
    chart.install(
        release.WHERE,
        "--set=controller.replicas=2",
        MANAGED,
        managed_devices.NOWHERE,
    )
    playground.until(lambda: rule_taint(kube) is None, 120, "the rule is gone")
    release.install()


@pytest.fixture
def ground(
    managed: dict[str, Outcome], cluster: api.Cluster, kube: client.KubeClient
) -> Iterator[playground.Playground]:
    """A namespace, while the controller allocates both."""
    assert managed
    field = playground.Playground.open(cluster, kube)
    try:
        yield field
    finally:
        field.close()


def gpu_taints(kube: client.KubeClient) -> set[str]:
    """Return the keys of the taints on our GPUs."""
    return {
        taint["key"]
        for entry in other_drivers.published(kube, names.DRIVER)
        for device in entry["spec"].get("devices", ())
        for taint in device.get("taints", ())
        if taint["key"] in {names.ALLOCATOR_TAINT, names.HANDOVER_TAINT}
    }


def rule_taint(kube: client.KubeClient) -> str | None:
    return managed_devices.rule_taint(kube, pools.DRIVER)


def outcome(
    cluster: api.Cluster,
    kube: client.KubeClient,
    manifest: joint_manifests.Manifest,
    expected: int,
) -> Outcome:
    """Create the objects of a manifest, wait until so many pods run, and delete them."""
    field = playground.Playground.open(cluster, kube)
    try:
        documents = yaml.safe_dump_all(manifest.objects)
        cluster.kubectl("apply", "-n", field.namespace, "-f", "-", input=documents)
        deadline = time.monotonic() + WITHIN_S
        while running(field) < expected and time.monotonic() < deadline:
            time.sleep(0.2)
        if expected < manifest.pods:
            time.sleep(PENDING_S)
        held = results(field)
        assert len(set(held)) == len(held), held
        by_driver: dict[str, int] = {}
        for driver, *_ in held:
            by_driver[driver] = by_driver.get(driver, 0) + 1
        return Outcome(running(field), tuple(sorted(by_driver.items())))
    finally:
        remove = ("delete", "deployments,statefulsets,jobs", "--all", "--cascade=foreground")
        cluster.kubectl(*remove, "--timeout=90s", "--namespace", field.namespace)
        field.close()


def running(field: playground.Playground) -> int:
    """Return the number of pods that run."""
    pods = field.kube.list(gvr.PODS, namespace=field.namespace).items
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def results(field: playground.Playground) -> list[tuple[str, str, str, str]]:
    """Return what the claims of running pods have: driver, pool, device, share."""
    pods = field.kube.list(gvr.PODS, namespace=field.namespace).items
    uids = {pod["metadata"]["uid"] for pod in pods if pod["status"].get("phase") == "Running"}
    return [
        (result["driver"], result["pool"], result["device"], result.get("shareID", ""))
        for claim in field.claims()
        if uids & {entry["uid"] for entry in claim.get("status", {}).get("reservedFor", ())}
        for result in other_drivers.results(claim)
    ]


@pytest.mark.parametrize("manifest", joint_manifests.manifests(), ids=lambda m: m.name)
def test_a_manifest_ends_as_under_kube_scheduler_or_better(
    managed: dict[str, Outcome],
    cluster: api.Cluster,
    kube: client.KubeClient,
    manifest: joint_manifests.Manifest,
) -> None:
    previous = managed[manifest.name]
    assert previous.running == manifest.runs
    ours = outcome(cluster, kube, manifest, manifest.controller_runs)
    assert ours.running == manifest.controller_runs
    if ours.running == previous.running:
        assert ours.devices == previous.devices


def test_every_prepared_claim_had_its_nics_for_itself(
    managed: dict[str, Outcome], nics: nic_driver.NicDriver
) -> None:
    assert managed
    refused = [call for call in nics.calls if call.error]
    assert refused == []


def test_a_gang_of_four_pods_has_two_pairs_under_a_root_each(ground: playground.Playground) -> None:
    pairs = joint.pairs(2)
    for request in pairs["requests"]:
        if request["name"].startswith("nic"):
            request["exactly"]["selectors"] = joint_manifests.nic()["exactly"]["selectors"]
    ground.create(joint.a_template("pairs", pairs))
    members = [f"rank-{number}" for number in range(4)]
    for name in members:
        raw = other_drivers.a_pod(name, template="pairs")
        raw["spec"] |= {"nodeSelector": {}, "tolerations": []}
        raw["metadata"] |= {
            "labels": {names.GANG_LABEL: "train"},
            "annotations": {names.GANG_SIZE: "4"},
        }
        ground.create(raw)
    for name in members:
        ground.running(name)
    for claim in ground.claims():
        roots = {
            result["request"]: other_drivers.attribute(ground.kube, result, joint.PCIE_ROOT)
            for result in other_drivers.results(claim)
        }
        assert roots["gpu-0"] == roots["nic-0"]
        assert roots["gpu-1"] == roots["nic-1"]


def test_a_refused_pair_names_what_lacks(ground: playground.Playground) -> None:
    taken = joint_manifests.claim("taken", [joint_manifests.nic(count=8)])
    ground.create(taken, joint_manifests.pod("taken", "taken", node=ground.cluster.nodes()[0]))
    ground.running("taken")
    pair = joint_manifests.claim(
        "pair",
        [joint_manifests.gpu(), joint_manifests.nic()],
        objects.matching(joint.PCIE_ROOT),
    )
    ground.create(pair, joint_manifests.pod("pod", "pair", node=ground.cluster.nodes()[0]))
    (note, *_) = ground.told("pod", "NoFit", 30)
    assert "1 of 2 devices fit" in note
    assert "DeviceInUse" in note


def test_a_queue_limits_nics(ground: playground.Playground) -> None:
    queue = {
        "apiVersion": "ration.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "e2e-nics"},
        "spec": {
            "members": [{"namespace": ground.namespace}],
            "limit": {"devices": [{"driver": pools.DRIVER, "count": 1}]},
        },
    }
    ground.cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(queue))
    try:
        for name in ("first", "second"):
            ground.create(
                joint_manifests.claim(name, [joint_manifests.nic()]),
                joint_manifests.pod(name, name),
            )
        ground.running("first")
        (note, *_) = ground.told("second", "QueueLimitExceeded", 30)
        assert f"1 of 1 device of {pools.DRIVER}" in note
        ground.delete_pod("first")
        ground.running("second")
    finally:
        ground.cluster.kubectl("delete", "queue", "e2e-nics")
