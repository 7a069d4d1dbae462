"""PodGroups of Kubernetes' own on a cluster with their feature gates, which is this module's own.

kube-scheduler has a cycle of its own for each PodGroup there; which devices the pods get is ours.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.resources.dra import claims
from hack.chart import helm
from hack.cluster import api
from hack.cluster import errors as cluster_errors
from tests.e2e import playground
from tests.e2e.conftest import ROOT, hack

pytestmark = [pytest.mark.timeout(600)]
Raw = playground.Raw
GATES = "GenericWorkload=true,DRAWorkloadResourceClaims=true,TopologyAwareWorkloadScheduling=true"
CONTROLLER = "controller-0"
GROUP = "train"
HIGH = "e2e-high"
NODES = ("node-0", "node-1")
SHARED = {"name": "made", "resourceClaimTemplateName": "gpu"}
"""As `playground.a_pod` names the claim of a template."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    with contextlib.suppress(cluster_errors.ClusterError):
        api.Cluster.load(ROOT)
        pytest.skip("a cluster is up, without the feature gates: make cluster-down")
    if (os.environ.get("K8S") or "1.37") != "1.37":
        pytest.skip("of the alpha versions in 1.36 only the fields of a gang are read")
    hack("up", "--nodes", "2", "--controllers", "1", f"--feature-gates={GATES}")
    try:
        load = api.Cluster.load(ROOT)
        rendered = helm.objects(helm.template("--set=controller.podGroups=true"))
        rights = [each for each in rendered if each["kind"] == "ClusterRole"]
        for role in rights:
            load.kubectl(
                "apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(role)
            )
        priority = {"metadata": {"name": HIGH}, "value": 1000}
        kube = client.KubeClient.connect(load.kubeconfig, "ration-e2e")
        kube.create(gvr.PRIORITY_CLASSES, priority)
        with load.with_flags(CONTROLLER, "--pod-groups"):
            yield load
    finally:
        hack("down")


@pytest.fixture
def kube(cluster: api.Cluster) -> client.KubeClient:
    return client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")


@pytest.fixture
def field(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[playground.Playground]:
    ground = playground.Playground.open(cluster, kube)
    sizes = {"gpu": 1, "four": 4, "eight": 8}
    ground.create(*(playground.a_template(name, count) for name, count in sizes.items()))
    try:
        yield ground
    finally:
        cluster.kubectl("-n", ground.namespace, "delete", "jobs", "--all")
        cluster.kubectl("-n", ground.namespace, "delete", "podgroups", "--all", "--wait=false")
        ground.close()


def a_group(
    field: playground.Playground, min_count: int = 0, name: str = GROUP, **spec: Any
) -> None:
    """Create a PodGroup; without a count its policy is basic."""
    policy = {"gang": {"minCount": min_count}} if min_count else {"basic": {}}
    body = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }
    field.kube.create(gvr.POD_GROUPS, body, field.namespace)


def a_member(name: str, template: str = "gpu", group: str = GROUP, **spec: Any) -> Raw:
    pod = playground.a_pod(name, template=template, **spec)
    pod["spec"] |= {"schedulingGroup": {"podGroupName": group}, "nodeSelector": {}}
    pod["metadata"]["annotations"] = {names.PREEMPTIBLE: "true"}
    return pod


def members(
    field: playground.Playground, count: int, template: str = "gpu", **more: Any
) -> list[str]:
    group = str(more.get("group", GROUP))
    texts = [f"{group}-{number}" for number in range(count)]
    field.create(*(a_member(name, template, **more) for name in texts))
    return texts


def allocated(field: playground.Playground) -> list[claims.Claim]:
    parsed = (claims.parse(claim) for claim in field.claims())
    return [claim for claim in parsed if claim.allocation is not None]


def devices(field: playground.Playground) -> list[claims.DeviceId]:
    allocations = (claim.allocation for claim in allocated(field))
    return [entry.device for result in allocations if result for entry in result.results]


def nodes_of(field: playground.Playground, texts: list[str]) -> list[str]:
    """Return the node of each bound pod."""
    parsed = (pods.parse(field.pod(name)) for name in texts if field.find(name))
    return [pod.node for pod in parsed if pod.node is not None]


def preempted_by_scheduler(field: playground.Playground) -> list[str]:
    return [
        item.get("note", "")
        for item in field.kube.list(gvr.EVENTS, namespace=field.namespace).items
        if item["reason"] == "Preempted" and item["reportingController"] != "ration-controller"
    ]


def group_condition(field: playground.Playground, name: str = GROUP) -> str:
    status = field.kube.get(gvr.POD_GROUPS, name, field.namespace).get("status") or {}
    entries = {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}
    return str(entries.get("PodGroupInitiallyScheduled", ""))


def shared_claim(field: playground.Playground) -> claims.Claim:
    """Return the claim that was made of the group's template."""
    matching = [claim for claim in map(claims.parse, field.claims()) if claim.pod_claim == "made"]
    assert len(matching) == 1
    return matching[0]


def delete_group(field: playground.Playground, name: str = GROUP) -> None:
    field.kube.delete(gvr.POD_GROUPS, name, field.namespace)


def keeper(field: playground.Playground, node: str) -> str:
    """A pod on a node that members with `KEPT_AWAY` avoid."""
    pod = playground.a_pod(f"keeper-{node}", nodeName=node, nodeSelector={})
    pod["metadata"]["labels"] = {"e2e-keep": "here"}
    field.create(pod)
    field.running(f"keeper-{node}")
    return f"keeper-{node}"


KEPT_AWAY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchExpressions": [{"key": "e2e-keep", "operator": "Exists"}]},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


def test_a_group_with_a_min_count_runs_as_a_whole(field: playground.Playground) -> None:
    a_group(field, 4)
    texts = members(field, 4, "four")
    for name in texts:
        field.running(name)
    assert {*nodes_of(field, texts)} == {*NODES}
    assert len(devices(field)) == len({*devices(field)}) == 16
    assert field.told(texts[0], "Allocated")[0].endswith("with all 4 of its gang in the cluster")
    assert group_condition(field) == "True"


def test_a_group_that_cannot_fit_holds_nothing_and_others_run(field: playground.Playground) -> None:
    a_group(field, 3)
    texts = members(field, 3, "eight")
    (words,) = field.told(texts[2], "NoFit")
    assert "No place for all 3 of the gang in the cluster" in words
    assert allocated(field) == []
    field.create(playground.a_pod("small", template="gpu", nodeSelector={}))
    field.running("small")
    assert nodes_of(field, texts) == []
    assert group_condition(field) == "False"
    assert preempted_by_scheduler(field) == []


def test_a_group_waits_for_its_min_count_and_spare_pods_follow(
    field: playground.Playground,
) -> None:
    a_group(field, 2)
    field.create(a_member("train-0"))
    playground.until(
        lambda: "GangPending: waits for 1 more of its 2 pods" in field.events("train-0"),
        20,
        "the gang is said to wait",
    )
    assert allocated(field) == []
    field.create(a_member("train-1"), a_member("train-2"))
    for number in range(3):
        field.running(f"train-{number}")


def test_pods_of_a_basic_group_run_one_by_one(field: playground.Playground) -> None:
    a_group(field)
    texts = members(field, 3, "eight")
    playground.until(lambda: len(nodes_of(field, texts)) == 2, 60, "two of three pods are bound")
    (left,) = [name for name in texts if pods.parse(field.pod(name)).node is None]
    field.told(left, "NoFit")


def test_a_job_of_a_group_starts_all_its_pods_at_once(field: playground.Playground) -> None:
    a_group(field, 3)
    spec = a_member("x", "four", command="exec sleep 2")["spec"] | {"restartPolicy": "Never"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {
            "completionMode": "Indexed",
            "completions": 3,
            "parallelism": 3,
            "template": {"spec": spec},
        },
    }
    field.kube.create(gvr.JOBS, job, field.namespace)

    def completed() -> bool:
        status = field.kube.get(gvr.JOBS, "job", field.namespace).get("status") or {}
        return bool(status.get("succeeded") == 3)

    playground.until(completed, 90, "the Job is complete")


def test_a_pod_of_another_priority_than_its_group_gets_no_devices(
    field: playground.Playground,
) -> None:
    a_group(field, 1, priorityClassName=HIGH)
    field.create(a_member("train-0"))
    (words,) = field.told("train-0", "GangInvalid")
    assert "PodGroup train has the priority 1000, pod train-0 0" in words
    condition = playground.until(
        lambda: pods.parse(field.pod("train-0")).pending, 20, "a condition"
    )
    assert condition is not None
    assert condition.reason == "GangInvalid"
    assert allocated(field) == []


def test_a_topology_constraint_keeps_a_group_in_one_domain(field: playground.Playground) -> None:
    host = {"topology": [{"key": "kubernetes.io/hostname"}]}
    a_group(field, 2, schedulingConstraints=host)
    for name in members(field, 2, "four"):
        field.running(name)
    assert len({*nodes_of(field, ["train-0", "train-1"])}) == 1
    a_group(field, 3, name="large", schedulingConstraints=host)
    texts = members(field, 3, "four", group="large")
    (words,) = field.told(texts[0], "NoFit")
    assert "kubernetes.io/hostname" in words
    assert nodes_of(field, texts) == []


@pytest.mark.parametrize(
    ("policy", "evicted"),
    [
        ({"disruptionMode": {"single": {}}}, 1),
        ({"disruptionMode": {"all": {}}}, 2),
        ({"schedulingPolicy": {"gang": {"minCount": 2}}}, 2),
    ],
    ids=["single", "all", "gang"],
)
def test_a_group_is_preempted_as_its_disruption_mode_says(
    field: playground.Playground, policy: Raw, evicted: int
) -> None:
    a_group(field, name="low", **policy)
    low = members(field, 2, "eight", group="low")
    for name in low:
        field.running(name)
    a_group(field, 1, name="high", priorityClassName=HIGH)
    (high,) = members(field, 1, "eight", group="high", priorityClassName=HIGH)
    field.running(high, within_s=90)
    assert len([name for name in low if field.find(name) is None]) == evicted
    assert preempted_by_scheduler(field) == []


def test_a_claim_that_a_group_shares_is_allocated_once(field: playground.Playground) -> None:
    a_group(field, 3, resourceClaims=[SHARED])
    texts = members(field, 3)
    for name in texts:
        field.running(name)
    assert len({*nodes_of(field, texts)}) == 1
    assert len({tuple(field.uuids(name)) for name in texts}) == 1
    playground.until(
        lambda: [entry.is_pod_group for entry in shared_claim(field).consumers] == [True],
        30,
        "the claim is reserved for the group alone",
    )
    assert len(devices(field)) == 1


def test_devices_of_a_group_are_its_own_until_it_is_deleted(field: playground.Playground) -> None:
    a_group(field, 2, resourceClaims=[SHARED])
    texts = members(field, 2)
    for name in texts:
        field.running(name)
    (device,) = devices(field)
    field.delete_pod(texts[0])
    assert field.running(texts[1])
    field.create(a_member("late"))
    field.running("late")
    assert field.uuids("late") == field.uuids(texts[1])
    for name in ("late", texts[1]):
        field.delete_pod(name)
    assert devices(field) == [device]
    delete_group(field)
    playground.until(lambda: not allocated(field), 60, "the devices are free")
    field.create(
        playground.a_pod("whole", template="eight", nodeSelector=playground.on(device.pool))
    )
    field.running("whole")


def test_pods_of_a_group_have_devices_of_their_own_beside_the_shared_ones(
    field: playground.Playground,
) -> None:
    field.create(playground.a_claim("named", 2))
    a_group(field, 3, resourceClaims=[{"name": "c0", "resourceClaimName": "named"}])
    texts = members(field, 3, "gpu", claims=("named",))
    for name in texts:
        field.running(name)
    assert len({*nodes_of(field, texts)}) == 1
    uuids = [{*field.uuids(name)} for name in texts]
    assert [len(entry) for entry in uuids] == [3, 3, 3]
    assert len(set.intersection(*uuids)) == 2
    for name in texts:
        field.delete_pod(name)
    delete_group(field)
    playground.until(lambda: not allocated(field), 60, "the named claim has no allocation")
    assert claims.parse(field.claim("named")).consumers == ()


def test_a_shared_claim_that_the_scheduler_will_not_have_is_taken_back(
    field: playground.Playground,
) -> None:
    """A pod that one member keeps away from comes to each node after the claim was allocated."""
    a_group(field, 2, resourceClaims=[SHARED])
    texts = ["train-0", "train-1"]
    field.cluster.stop("kube-scheduler")
    try:
        for name in texts:
            pod = a_member(name, affinity=KEPT_AWAY if name == "train-1" else {})
            pod["metadata"]["annotations"][names.GANG_TIMEOUT] = "10s"
            field.create(pod)
        playground.until(lambda: len(allocated(field)) == 1, 30, "the claim is allocated")
        keepers = [keeper(field, node) for node in NODES]
    finally:
        field.cluster.start("kube-scheduler")
    field.told("train-0", "GangReleased", within_s=60)
    playground.until(lambda: not allocated(field), 60, "the devices are free")
    assert nodes_of(field, texts) == []
    for name in keepers:
        field.delete_pod(name)
    for name in texts:
        field.running(name, within_s=150)


def test_a_reservation_for_a_group_that_is_given_up_is_removed_before_its_devices(
    field: playground.Playground,
) -> None:
    """kube-scheduler waits to bind the gang, and no controller lets it until it is too late."""
    a_group(field, 2, resourceClaims=[SHARED])
    texts = ["train-0", "train-1"]
    field.cluster.stop("kube-scheduler")
    try:
        for name in texts:
            pod = a_member(name)
            pod["metadata"]["annotations"][names.GANG_TIMEOUT] = "15s"
            field.create(pod)
        playground.until(lambda: len(allocated(field)) == 1, 30, "the claim is allocated")
        field.cluster.kill(CONTROLLER)
    finally:
        field.cluster.start("kube-scheduler")
    try:
        playground.until(
            lambda: any(entry.is_pod_group for entry in shared_claim(field).consumers),
            30,
            "kube-scheduler has reserved the claim for the group",
        )
        time.sleep(15)
        assert nodes_of(field, texts) == []
    finally:
        field.cluster.start(CONTROLLER)
    field.told("train-0", "GangReleased", within_s=60)
    for name in texts:
        field.running(name, within_s=150)


def test_bound_pods_of_a_group_get_the_claim_that_it_shares(field: playground.Playground) -> None:
    """Pods with spec.nodeName, which kube-scheduler never sees.

    The kubelet asks for claims that are not there yet about once a minute.
    """
    a_group(field, resourceClaims=[SHARED])
    texts = members(field, 2, nodeName=NODES[1])
    for name in texts:
        field.running(name, within_s=150)
    assert len({tuple(field.uuids(name)) for name in texts}) == 1


def test_pods_of_a_basic_group_share_a_claim_as_they_come(field: playground.Playground) -> None:
    a_group(field, resourceClaims=[SHARED])
    texts = members(field, 3)
    for name in texts:
        field.running(name)
    assert len({*nodes_of(field, texts)}) == 1
    playground.until(
        lambda: [entry.is_pod_group for entry in shared_claim(field).consumers] == [True],
        30,
        "the claim is reserved for the group alone",
    )


def test_a_new_leader_carries_on_with_a_claim_that_a_group_shares(
    field: playground.Playground,
) -> None:
    a_group(field, 2, resourceClaims=[SHARED])
    field.cluster.stop("kube-scheduler")
    try:
        texts = members(field, 2)
        playground.until(lambda: len(allocated(field)) == 1, 30, "the claim is allocated")
        field.cluster.kill(CONTROLLER)
    finally:
        field.cluster.start("kube-scheduler")
        field.cluster.start(CONTROLLER)
    for name in texts:
        field.running(name, within_s=90)
    playground.until(
        lambda: [entry.is_pod_group for entry in shared_claim(field).consumers] == [True],
        30,
        "the claim is reserved for the group alone",
    )


def test_a_scheduler_killed_once_it_has_reserved_a_shared_claim_binds_all(
    field: playground.Playground,
) -> None:
    a_group(field, 4, resourceClaims=[SHARED])
    texts = members(field, 4)
    playground.until(
        lambda: field.claims() and any(e.is_pod_group for e in shared_claim(field).consumers),
        30,
        "kube-scheduler has reserved the claim for the group",
    )
    field.cluster.kill("kube-scheduler")
    field.cluster.start("kube-scheduler")
    for name in texts:
        field.running(name, within_s=120)


def test_a_group_deleted_before_it_is_bound_leaves_no_claim(
    field: playground.Playground,
) -> None:
    """The group is deleted while its pods wait to be bound."""
    a_group(field, 2, resourceClaims=[SHARED])
    field.cluster.stop("kube-scheduler")
    try:
        texts = members(field, 2)
        playground.until(lambda: len(allocated(field)) == 1, 30, "the claim is allocated")
        delete_group(field)
        for name in texts:
            field.delete_pod(name)
    finally:
        field.cluster.start("kube-scheduler")
    playground.until(lambda: not field.claims(), 60, "the claim is gone")
