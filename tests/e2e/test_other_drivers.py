"""Other DRA drivers on the nodes of ours: each pod runs, whoever allocates its claims.

Kubernetes' own example driver is the real one, with its GPUs and its NICs. NICs that
share PCIe roots with our GPUs are of the NIC driver of these tests.
"""

from collections.abc import Iterator

import pytest

from driver import names
from driver.kube import client, gvr
from hack.cluster import api, errors, example_driver
from tests.e2e import deployments, other_drivers, playground
from tests.fakes.nic_driver import driver as nic_driver
from tests.fakes.nic_driver import pools, prepared_claims
from tests.support.builders import joint_claims as joint

# Where the example driver is not built yet, the first test waits for that.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
GPUS = example_driver.Installation()
NETS = example_driver.Installation(example_driver.Profile.NET, devices=2)
GPU = joint.only(GPUS.name)
NET = joint.only(NETS.name)
NIC = joint.only(pools.DRIVER)
MIXED = "e2e-m"
WIPED_S = 90.0
"""A kubelet deletes the slices of a driver that has left after half a minute."""
Raw = playground.Raw


@pytest.fixture(scope="module")
def theirs(cluster: api.Cluster, nodes: tuple[str, ...]) -> Iterator[api.Cluster]:
    """The example driver with both profiles on the nodes."""
    try:
        example_driver.fetch()
    except errors.ClusterError as error:
        pytest.skip(f"the example driver cannot be built here: {error}")
    try:
        for installation in (GPUS, NETS):
            cluster.install_example_driver(installation, *nodes)
        yield cluster
    finally:
        for installation in (GPUS, NETS):
            cluster.uninstall_example_driver(installation)


@pytest.fixture(scope="module")
def nics(
    cluster: api.Cluster, nodes: tuple[str, ...], kube: client.KubeClient
) -> Iterator[nic_driver.NicDriver]:
    """The NIC driver on the nodes, a NIC beside each PCIe root."""
    with other_drivers.nics_on(cluster, kube, nodes) as running:
        yield running


@pytest.fixture
def ground(theirs: api.Cluster, field: playground.Playground) -> playground.Playground:
    """A namespace on nodes that the example driver serves too."""
    assert theirs is not None
    return field


# The example driver.


def test_both_drivers_publish_their_devices_of_the_same_nodes(
    theirs: api.Cluster, kube: client.KubeClient, nodes: tuple[str, ...]
) -> None:
    for node in nodes:
        (gpus,) = other_drivers.published(kube, GPUS.name, node)
        (nets,) = other_drivers.published(kube, NETS.name, node)
        assert (len(gpus["spec"]["devices"]), len(nets["spec"]["devices"])) == (8, 2)
        assert other_drivers.published(kube, names.DRIVER, node)
        assert theirs.pid(GPUS.name, node) != theirs.pid(NETS.name, node)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
def test_workloads_of_another_driver_run_as_kube_scheduler_allocates_them(
    ground: playground.Playground, kind: str
) -> None:
    ground.create(joint.a_template("gpu", GPU))
    deployments.apply(ground, other_drivers.a_workload(kind, "web", "gpu", replicas=3))
    try:
        running = playground.until(lambda: three_run(ground), 90, f"the pods of the {kind} run")
        for pod in running:
            shown = other_drivers.variables(ground, pod, "GPU_DEVICE_")
            assert len({value for value in shown.values() if value.startswith("gpu-")}) == 1
        claims = ground.claims()
        held = [
            (result["pool"], result["device"])
            for claim in claims
            for result in other_drivers.results(claim, GPUS.name)
        ]
        assert len(set(held)) == len(held) == 3
        for claim in claims:
            assert "kube-scheduler" in other_drivers.writers(claim)
            assert not is_ours(claim)
        assert not {"Allocated", "NoFit"} & ground.reasons()
    finally:
        remove = ("delete", kind.lower(), "web", "--cascade=foreground", "--timeout=90s")
        ground.cluster.kubectl(*remove, "--namespace", ground.namespace)


def three_run(field: playground.Playground) -> list[str]:
    """Return the names of the three pods of a workload once all run."""
    pods = field.kube.list(gvr.PODS, namespace=field.namespace).items
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    return [pod["metadata"]["name"] for pod in running] if len(running) == 3 else []


def test_our_controller_allocates_ours_where_all_of_theirs_are_taken(
    ground: playground.Playground, nodes: tuple[str, ...]
) -> None:
    ground.create(joint.a_claim("theirs", joint.only(GPUS.name, 8)), playground.a_claim("ours", 8))
    for name in ("theirs", "ours"):
        ground.create(other_drivers.a_pod(name, name, node=nodes[0]))
    for name in ("theirs", "ours"):
        ground.running(name)
    assert len(set(ground.uuids("ours"))) == 8
    assert is_ours(ground.claim("ours"))
    assert not is_ours(ground.claim("theirs"))
    assert len(other_drivers.results(ground.claim("theirs"), GPUS.name)) == 8


def is_ours(claim: Raw) -> bool:
    """Return whether our controller has written anything of a claim."""
    return any(writer.startswith("ration-controller") for writer in other_drivers.writers(claim))


def test_a_pod_runs_with_a_gpu_of_ours_and_a_nic_of_theirs(
    ground: playground.Playground,
) -> None:
    ground.create(playground.a_claim("gpu"), joint.a_claim("net", NET))
    ground.create(other_drivers.a_pod("pod", "gpu", "net"))
    node = ground.running("pod")["spec"]["nodeName"]
    assert len(ground.uuids("pod")) == 1
    assert other_drivers.variables(ground, "pod", "NET_DEVICE_")
    for claim, driver in (("gpu", names.DRIVER), ("net", NETS.name)):
        (result,) = other_drivers.results(ground.claim(claim))
        assert (result["driver"], result["pool"]) == (driver, node)


def test_uninstalling_theirs_leaves_ours_working(
    ground: playground.Playground, theirs: api.Cluster, nodes: tuple[str, ...]
) -> None:
    ground.create(playground.a_template("gpu"))
    ground.create(playground.a_pod("previous", template="gpu"))
    ground.running("previous")
    previous = other_drivers.published(ground.kube, names.DRIVER)
    try:
        for installation in (GPUS, NETS):
            theirs.uninstall_example_driver(installation)
        classes = {
            entry["metadata"]["name"] for entry in ground.kube.list(gvr.DEVICE_CLASSES).items
        }
        assert not {GPUS.name, NETS.name} & classes
        playground.until(lambda: not slices_of_theirs(ground.kube), WIPED_S, "the slices are gone")
        assert other_drivers.published(ground.kube, names.DRIVER) == previous
        ground.create(playground.a_pod("next", template="gpu"))
        ground.running("next")
        assert ground.uuids("next") != ground.uuids("previous")
        assert ground.pod("previous")["status"]["phase"] == "Running"
    finally:
        for installation in (GPUS, NETS):
            theirs.install_example_driver(installation, *nodes)


def slices_of_theirs(kube: client.KubeClient) -> list[Raw]:
    return [
        entry
        for installation in (GPUS, NETS)
        for entry in other_drivers.published(kube, installation.name)
    ]


# The NIC driver of tests.


def test_a_pod_has_a_gpu_of_ours_and_a_nic_beside_the_gpus(
    field: playground.Playground, nics: nic_driver.NicDriver
) -> None:
    field.create(playground.a_claim("gpu"), joint.a_claim("nic", NIC))
    field.create(other_drivers.a_pod("pod", "gpu", "nic"))
    node = field.running("pod")["spec"]["nodeName"]
    (result,) = other_drivers.results(field.claim("nic"))
    device, key = result["device"], f"{field.namespace}/nic"
    variables = other_drivers.variables(field, "pod", "NIC_")
    assert variables == {f"NIC_{device.removeprefix('nic-')}": device}
    assert len(field.uuids("pod")) == 1
    field.delete_pod("pod")
    calls = [call for call in nics.calls if call.claim == key]
    assert {call.operation for call in calls} == {"prepare", "unprepare"}
    assert set(calls) == {
        prepared_claims.Call(operation, node, key, (f"{node}/{device}",))
        for operation in ("prepare", "unprepare")
    }


def test_a_nic_that_two_claims_were_allocated_is_refused_to_the_second(
    field: playground.Playground, nics: nic_driver.NicDriver
) -> None:
    field.create(joint.a_claim("first", NIC), joint.a_claim("second", NIC))
    field.create(other_drivers.a_pod("first", "first"))
    field.running("first")
    other_drivers.allocate(field, "second", field.claim("first")["status"]["allocation"])
    field.create(other_drivers.a_pod("second", "second"))
    (note, *_) = field.told("second", "FailedPrepareDynamicResources", 60)
    assert "still prepared for claim" in note
    (refusal, *_) = [call for call in nics.calls if call.error]
    assert refusal.claim == f"{field.namespace}/second"
    assert field.pod("second")["status"]["phase"] == "Pending"


def test_nics_attached_over_the_network_are_prepared_on_the_node_of_their_pod(
    field: playground.Playground, nics: nic_driver.NicDriver, nodes: tuple[str, ...]
) -> None:
    attached = [pools.Nic(f"far-{number}", attributes={"fabric": True}) for number in (0, 1)]
    pool = pools.Pool("fabric", tuple(attached), {"allNodes": True})
    nics.publish(pool)
    selector = f"device.attributes['{pools.DRIVER}'].?fabric.orValue(false)"
    field.create(joint.a_template("far", joint.only(pools.DRIVER, 1, selector)))
    try:
        for node in nodes:
            field.create(other_drivers.a_pod(node, template="far", node=node))
        for node in nodes:
            field.running(node)
        prepared = {(call.node, *call.devices) for call in nics.calls if "far-" in str(call)}
        assert {node for node, _ in prepared} == set(nodes)
        assert {device for _, device in prepared} == {"fabric/far-0", "fabric/far-1"}
        field.create(other_drivers.a_pod("third", template="far"))
        field.told("third", "FailedScheduling")
    finally:
        nics.withdraw(pool)


@pytest.fixture
def mixed(
    cluster: api.Cluster, nics: nic_driver.NicDriver, kube: client.KubeClient
) -> Iterator[str]:
    """A node whose GPUs kube-scheduler allocates, with a NIC beside each."""
    try:
        playground.add_node(cluster, MIXED, allocator="scheduler")
        other_drivers.serve(nics, cluster, kube, MIXED)
        yield MIXED
    finally:
        nics.leave(MIXED)
        cluster.remove_node(MIXED)


def test_kube_scheduler_pairs_gpus_and_nics_under_a_root_and_both_drivers_prepare(
    mixed: str, field: playground.Playground, nics: nic_driver.NicDriver
) -> None:
    pod = other_drivers.a_pod("pod", template="pairs", node=mixed)
    field.create(joint.a_template("pairs", joint.pairs(2)), pod)
    field.running("pod")
    assert len(set(field.uuids("pod"))) == 2
    assert len(other_drivers.variables(field, "pod", "NIC_")) == 2
    (claim,) = field.claims()
    roots = {
        result["request"]: other_drivers.attribute(field.kube, result, joint.PCIE_ROOT)
        for result in other_drivers.results(claim)
    }
    for number in (0, 1):
        assert roots[f"gpu-{number}"] == roots[f"nic-{number}"]
    assert roots["gpu-0"] != roots["gpu-1"]
    assert [call.node for call in nics.calls if len(call.devices) == 2] == [mixed]
