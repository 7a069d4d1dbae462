from typing import Any

import pytest

from driver import ids, reasons
from driver.resources.core import nodes, pods, volumes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects

Reason = reasons.Reason


def why(node: nodes.Node, pod: pods.Pod, *others: pods.Pod) -> allocator_types.NodeRejection | None:
    view = cluster_state.build(snapshots.DRIVER, snapshots.caches([node], found_pods=others))
    return filters.rejection(view, node, allocator_types.Workload(pod, ()))


def reason_of(node: nodes.Node, pod: pods.Pod, *others: pods.Pod) -> Reason | None:
    refusal = why(node, pod, *others)
    return refusal.node_reason if refusal else None


def test_a_plain_pod_fits_a_plain_node() -> None:
    assert reason_of(objects.node(), objects.pod()) is None


def test_a_cordoned_node_does_not_do_unless_tolerated() -> None:
    node = objects.node(unschedulable=True)
    tolerant = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert reason_of(node, objects.pod()) is Reason.NODE_CORDONED
    assert reason_of(node, objects.pod(tolerations=tolerant)) is None


def test_a_node_that_is_not_ready_does_not_do() -> None:
    raw = objects.a_node()
    raw["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert reason_of(nodes.parse(raw), objects.pod()) is Reason.NODE_NOT_READY


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ("NoSchedule", Reason.NODE_TAINTED),
        ("NoExecute", Reason.NODE_TAINTED),
        ("PreferNoSchedule", None),
    ],
)
def test_a_taint_keeps_pods_away_by_its_effect(effect: str, expected: Reason | None) -> None:
    node = objects.node(taints=[{"key": "team", "value": "a", "effect": effect}])
    assert reason_of(node, objects.pod()) is expected
    tolerant = objects.pod(tolerations=[{"key": "team", "value": "a"}])
    assert reason_of(node, tolerant) is None


def test_the_node_selector_must_match() -> None:
    pod = objects.pod(nodeSelector={"kubernetes.io/hostname": "node-b"})
    assert reason_of(objects.node("node-a"), pod) is Reason.NODE_MISMATCH
    assert reason_of(objects.node("node-b"), pod) is None


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ["node-a"], True),
        ("NotIn", ["node-a"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["1"], False),
    ],
)
def test_required_affinity_must_match(operator: str, values: list[str], *, fits: bool) -> None:
    entry = {"key": "kubernetes.io/hostname", "operator": operator, "values": values}
    terms = [{"matchExpressions": [entry]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = objects.pod(affinity={"nodeAffinity": required})
    assert (reason_of(objects.node("node-a"), pod) is None) is fits


def busy(name: str, cpu: str, **spec: Any) -> pods.Pod:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return objects.pod(name, nodeName="node-a", containers=containers, **spec)


def test_cpu_that_other_pods_ask_is_not_free() -> None:
    refusal = why(objects.node(), objects.pod(), busy("other", "7500m"))
    assert refusal is not None
    assert (refusal.node_reason, refusal.detail) == (Reason.NODE_FULL, "asks 1000m cpu, 500m free")


def test_a_finished_pod_asks_nothing() -> None:
    done = busy("other", "7500m", status={"phase": "Succeeded"})
    assert reason_of(objects.node(), objects.pod(), done) is None


def test_a_pod_on_its_way_counts_before_it_is_bound() -> None:
    """Two pods are not both sent to a node that has CPU for one."""
    coming = objects.pod(
        "coming", containers=[{"name": "m", "resources": {"requests": {"cpu": "8"}}}]
    )
    reserved = [{"resource": "pods", "name": "coming", "uid": coming.uid}]
    status = objects.allocated("node-a", "gpu-0", reserved=reserved)
    view = cluster_state.build(
        snapshots.DRIVER,
        snapshots.caches(
            [objects.node()], found_claims=[objects.claim(status=status)], found_pods=[coming]
        ),
    )
    refusal = filters.rejection(view, objects.node(), allocator_types.Workload(objects.pod(), ()))
    assert refusal is not None
    assert refusal.node_reason is Reason.NODE_FULL


def test_a_node_with_all_its_pods_takes_no_more() -> None:
    raw = objects.a_node()
    raw["status"]["allocatable"]["pods"] = "1"
    assert reason_of(nodes.parse(raw), objects.pod(), busy("other", "1m")) is Reason.NODE_FULL


def with_port(name: str, port: int, address: str = "", **spec: Any) -> pods.Pod:
    ports = [{"hostPort": port, "hostIP": address}]
    return objects.pod(name, containers=[{"name": "main", "ports": ports}], **spec)


def test_a_taken_host_port_is_a_conflict_on_the_same_address_only() -> None:
    other = with_port("other", 80, "10.0.0.1", nodeName="node-a")
    assert reason_of(objects.node(), with_port("pod", 80), other) is Reason.NODE_PORT_TAKEN
    assert reason_of(objects.node(), with_port("pod", 81), other) is None
    assert reason_of(objects.node(), with_port("pod", 80, "10.0.0.2"), other) is None


def test_a_volume_bound_elsewhere_keeps_the_pod_away() -> None:
    pod = objects.pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    view = cluster_state.ClusterState(snapshots.DRIVER)
    view.set_volume_claim(ids.Key("default/data"), volumes.VolumeClaim("disk"))
    present = {"nodeAffinity": {"required": objects.on_host("node-b")}}
    view.set_volume("disk", volumes.parse_volume({"spec": present}))
    refusal = filters.rejection(view, objects.node(), allocator_types.Workload(pod, ()))
    assert refusal is not None
    assert refusal.node_reason is Reason.NODE_VOLUME


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("example.com/nic", None),
        ("deviceclass.resource.kubernetes.io/nics", None),
        ("example.com/other", Reason.NODE_FULL),
        ("deviceclass.resource.kubernetes.io/gpu.ration.dev", Reason.NODE_FULL),
    ],
)
def test_an_extended_resource_of_another_drivers_class_is_kube_schedulers(
    resource: str, expected: Reason | None
) -> None:
    nics = objects.device_class(
        "nics", 'device.driver == "nic.example.com"', extendedResourceName="example.com/nic"
    )
    caches = snapshots.caches([objects.node()], found_classes=[nics, objects.device_class()])
    view = cluster_state.build(snapshots.DRIVER, caches)
    pod = requesting(resource)
    refusal = filters.rejection(view, objects.node(), allocator_types.Workload(pod, ()))
    assert (refusal.node_reason if refusal else None) is expected
    assert (filters.max_pods(view, objects.node(), pod) > 0) is (expected is None)


def test_an_extended_resource_is_counted_on_a_device_plugins_node() -> None:
    nics = objects.device_class("nics", "true", extendedResourceName="example.com/nic")
    raw = objects.a_node()
    raw["status"]["allocatable"]["example.com/nic"] = "1"
    node = nodes.parse(raw)
    caches = snapshots.caches(
        [node],
        found_classes=[nics],
        found_pods=[requesting("example.com/nic", "other", nodeName="node-a")],
    )
    view = cluster_state.build(snapshots.DRIVER, caches)
    work = allocator_types.Workload(requesting("example.com/nic"), ())
    refusal = filters.rejection(view, node, work)
    assert refusal is not None
    assert refusal.node_reason is Reason.NODE_FULL


def requesting(resource: str, name: str = "pod", **spec: Any) -> pods.Pod:
    """A pod that requests an extended resource."""
    container = {"name": "main", "resources": {"requests": {resource: "1"}}}
    return objects.pod(name, containers=[container], **spec)
