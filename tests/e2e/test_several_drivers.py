"""Sixty manifests over two drivers, under kube-scheduler and then under our controller.

Whoever allocates, each ends the same: as many pods run, with as many devices of each driver, of
which no two pods have the same. What only the controller does follows: gangs, queues, preemption.

Manifests run in lanes, each of two nodes with devices of the fabric of their own, so that as many
run at the same time.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from driver import names
from driver.kube import client, gvr
from hack.cluster import api, chart
from tests.e2e import (
    deployments,
    joint_manifests,
    managed_devices,
    other_drivers,
    playground,
    release,
)
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
LANES, LANE_NODES = 3, 2
URGENT: Raw = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "e2e-urgent"},
    "value": 1000,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Pods that run, and the number of devices allocated by driver."""

    running: int
    devices: tuple[tuple[str, int], ...]


Outcomes = dict[str, "futures.Future[Outcome]"]
"""The outcome of each manifest, or its failure, by its name."""


@pytest.fixture(scope="module")
def kube(cluster: api.Cluster) -> client.KubeClient:
    """The client of the tests."""
    return client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")


@pytest.fixture(scope="module")
def lanes(cluster: api.Cluster) -> Iterator[tuple[str, ...]]:
    """The nodes of all lanes, with the labels of their lanes."""
    managed_devices.require_rules(cluster)
    extra = [f"lane-{number}" for number in range(LANES * LANE_NODES - len(cluster.nodes()))]
    try:
        for name in extra:
            cluster.add_node(name)
        nodes = cluster.nodes()
        for index, name in enumerate(nodes):
            labels = joint_manifests.lane_labels(index // LANE_NODES)
            cluster.kubectl("label", "node", name, *(f"{k}={v}" for k, v in labels.items()))
        yield nodes
    finally:
        for name in set(extra) & set(cluster.nodes()):
            cluster.remove_node(name)
        cluster.kubectl("label", "nodes", "--all", f"{joint_manifests.LANE}-")


@pytest.fixture(scope="module")
def nics(
    cluster: api.Cluster, kube: client.KubeClient, lanes: tuple[str, ...]
) -> Iterator[nic_driver.NicDriver]:
    """NICs of every kind on each node, and two devices that all nodes of a lane reach."""
    with nic_driver.NicDriver(kube) as running:
        for node in lanes:
            running.serve(node, cluster.node_dir(node))
            gpus = other_drivers.published(kube, names.DRIVER, node)
            running.publish(pools.Pool(node, (*pools.beside(gpus), *joint_manifests.odd_nics())))
        for lane in range(LANES):
            running.publish(joint_manifests.fabric(lane))
        yield running


@pytest.fixture(scope="module")
def theirs(cluster: api.Cluster, kube: client.KubeClient, nics: nic_driver.NicDriver) -> Outcomes:
    """Return the outcomes while kube-scheduler allocates."""
    assert nics.name == pools.DRIVER
    release.install("--set=allocator=scheduler")
    playground.until(lambda: not gpu_taints(kube), 120, "kube-scheduler allocates our GPUs")
    return outcomes(cluster, kube, lambda manifest: manifest.runs)


@pytest.fixture(scope="module")
def managed(nics: nic_driver.NicDriver, kube: client.KubeClient) -> Iterator[nic_driver.NicDriver]:
    """The controller allocates both drivers' devices, from the first test that wants it on."""
    with handed_over(kube):
        yield nics


@pytest.fixture(scope="module")
def ours(
    theirs: Outcomes, managed: nic_driver.NicDriver, cluster: api.Cluster, kube: client.KubeClient
) -> Outcomes:
    """Return the outcomes while the controller allocates."""
    assert theirs
    assert managed.name
    return outcomes(cluster, kube, lambda manifest: manifest.controller_runs)


@contextlib.contextmanager
def handed_over(kube: client.KubeClient) -> Iterator[None]:
    """Have the controller allocate our GPUs and the NICs meanwhile."""
    release.install(MANAGED)
    allocator = {names.ALLOCATOR_TAINT}
    playground.until(lambda: gpu_taints(kube) == allocator, 120, "the controller has our GPUs")
    playground.until(lambda: rule_taint(kube) in allocator, 120, "the controller has the NICs")
    try:
        yield
    finally:
        chart.install(
            release.WHERE, "--set=controller.replicas=2", MANAGED, managed_devices.NOWHERE
        )
        playground.until(lambda: rule_taint(kube) is None, 120, "the rule is gone")
        release.install()


@pytest.fixture
def ground(
    managed: nic_driver.NicDriver, cluster: api.Cluster, kube: client.KubeClient
) -> Iterator[playground.Playground]:
    """A namespace, while the controller allocates both."""
    assert managed.name
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


def outcomes(
    cluster: api.Cluster,
    kube: client.KubeClient,
    expected: Callable[[joint_manifests.Manifest], int],
) -> Outcomes:
    """Run all manifests, those of each lane one after the other; return when all are done."""
    results: Outcomes = {}
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(futures.ThreadPoolExecutor(1)) for _ in range(LANES)]
        for index, manifest in enumerate(joint_manifests.manifests()):
            lane = index % LANES
            results[manifest.name] = workers[lane].submit(
                outcome, cluster, kube, manifest.in_lane(lane), expected(manifest)
            )
    return results


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
        end_workloads(field)
        field.close()


def end_workloads(field: playground.Playground) -> None:
    """Delete what makes pods in a namespace, with its pods."""
    remove = ("delete", "deployments,statefulsets,jobs", "--all", "--cascade=foreground")
    field.cluster.kubectl(*remove, "--timeout=90s", "--namespace", field.namespace)


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
    theirs: Outcomes, ours: Outcomes, manifest: joint_manifests.Manifest
) -> None:
    previous, now = theirs[manifest.name].result(), ours[manifest.name].result()
    assert previous.running == manifest.runs
    assert now.running == manifest.controller_runs
    if now.running == previous.running:
        assert now.devices == previous.devices


def test_every_prepared_claim_had_its_nics_for_itself(
    ours: Outcomes, nics: nic_driver.NicDriver
) -> None:
    assert ours
    refused = [call for call in nics.calls if call.error]
    assert refused == []


def test_a_gang_of_four_pods_has_two_pairs_under_a_root_each(ground: playground.Playground) -> None:
    pairs = joint.pairs(2)
    for request in pairs["requests"]:
        if request["name"].startswith("nic"):
            request["exactly"]["selectors"] = joint_manifests.nic()["exactly"]["selectors"]
    # The first device is a NIC, and has the condition for which the binding waits.
    pairs["requests"].reverse()
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


def test_a_pod_of_higher_priority_gets_the_gpu_and_nic_of_a_lower_one(
    ground: playground.Playground,
) -> None:
    requests = [joint_manifests.gpu(count=8), joint_manifests.nic(count=8)]
    web = other_drivers.a_workload("Deployment", "web", "all", replicas=LANE_NODES)
    lane = joint_manifests.lane_labels(0)
    web["spec"]["template"]["spec"] |= {"nodeSelector": lane, "tolerations": []}
    ground.create(joint.a_template("all", {"requests": requests}))
    deployments.apply(ground, web)
    try:
        playground.until(lambda: running(ground) == LANE_NODES, 60, "the lower pods have all")
        ground.cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(URGENT))
        pair = [joint_manifests.gpu(), joint_manifests.nic()]
        urgent = joint_manifests.pod("urgent", "pair")
        urgent["spec"] |= {"nodeSelector": lane, "priorityClassName": URGENT["metadata"]["name"]}
        ground.create(
            joint_manifests.claim("pair", pair, objects.matching(joint.PCIE_ROOT)), urgent
        )
        ground.running("urgent", 90)
        assert "Preempted" in ground.reasons()
        playground.until(lambda: running(ground) == LANE_NODES, 30, "only one of them is evicted")
        held = results(ground)
        assert len(set(held)) == len(held) == 8 + 8 + 2
    finally:
        end_workloads(ground)
        ground.cluster.kubectl("delete", "priorityclass", URGENT["metadata"]["name"])


def test_a_drained_node_is_left_with_the_devices_of_both_drivers(
    ground: playground.Playground,
) -> None:
    web = other_drivers.a_workload("Deployment", "web", "pair", replicas=1)
    lane = joint_manifests.lane_labels(0)
    web["spec"]["template"]["spec"] |= {"nodeSelector": lane, "tolerations": []}
    pair = {"requests": [joint_manifests.gpu(), joint_manifests.nic()]}
    ground.create(joint.a_template("pair", pair))
    deployments.apply(ground, web)
    node = ""
    try:
        playground.until(lambda: running(ground) == 1, 60, "the pod runs")
        (previous,) = {pool for _, pool, *_ in results(ground)}
        node = previous
        ground.cluster.kubectl("drain", node, "--pod-selector=app=web", "--timeout=60s")
        playground.until(
            lambda: {pool for _, pool, *_ in results(ground)} - {previous},
            60,
            "the next pod runs on the other node",
        )
        assert {driver for driver, *_ in results(ground)} == {names.DRIVER, pools.DRIVER}
    finally:
        end_workloads(ground)
        if node:
            ground.cluster.kubectl("uncordon", node)


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
