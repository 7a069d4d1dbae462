"""Plain workloads, as users write them: pods run where their claims are, or are told why not."""

import json
import time
from typing import Any

import pytest

from driver.kube import gvr
from driver.resources.dra import claims
from driver.scheduling.snapshot import snapshot
from hack.cluster import api
from tests.e2e import playground
from tests.e2e.playground import Raw

HOSTNAME = "kubernetes.io/hostname"
SHARE = "gpu-timeslice.ration.dev"


def a_workload(kind: str, name: str, template: str, replicas: int = 0, **spec: Any) -> Raw:
    """A Deployment or DaemonSet whose pods each have a claim of a template."""
    pod = playground.a_pod(name, template=template, **spec)
    template_of_pods = {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]}
    more = {"replicas": replicas} if kind == "Deployment" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template_of_pods, **more},
    }


def apply(field: playground.Playground, *objects: Raw) -> None:
    for each in objects:
        field.cluster.kubectl("apply", "-n", field.namespace, "-f", "-", input=json.dumps(each))


def pods_of(field: playground.Playground, app: str) -> list[Raw]:
    listed = field.kube.list(gvr.PODS, namespace=field.namespace).items
    return [pod for pod in listed if pod["metadata"].get("labels", {}).get("app") == app]


def all_run(field: playground.Playground, app: str, count: int, within_s: float = 30) -> list[Raw]:
    """Wait until so many pods of an app run, each on the node of its claim."""

    def running() -> list[Raw]:
        ready = [pod for pod in pods_of(field, app) if pod["status"].get("phase") == "Running"]
        return ready if len(ready) >= count else []

    ready = playground.until(running, within_s, f"{count} pods of {app} run")
    for pod in ready:
        assert_agrees(field, pod)
    return ready


def assert_agrees(field: playground.Playground, pod: Raw) -> None:
    for entry in pod["status"].get("resourceClaimStatuses", ()):
        claim = claims.parse(field.claim(entry["resourceClaimName"]))
        assert snapshot.pinned_node(claim) == pod["spec"]["nodeName"], pod["metadata"]["name"]


def delete_workload(field: playground.Playground, kind: str, name: str) -> None:
    """Delete it before the namespace's pods: its controller would make them again."""
    field.cluster.kubectl("delete", kind, name, "-n", field.namespace, "--cascade=foreground")


@pytest.mark.smoke
def test_replicas_that_spread_over_nodes_run_at_once(field: playground.Playground) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    field.create(playground.a_template("gpu"))
    spec: Raw = {"topologySpreadConstraints": [constraint]}
    apply(field, a_workload("Deployment", "web", "gpu", replicas=4, **spec))
    try:
        by_node = [pod["spec"]["nodeName"] for pod in all_run(field, "web", 4)]
        assert sorted(by_node.count(node) for node in {*by_node}) == [2, 2]
        assert "AllocationCleared" not in field.reasons()
    finally:
        delete_workload(field, "deployment", "web")


def test_replicas_that_keep_apart_run_on_different_nodes(field: playground.Playground) -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "apart"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    field.create(playground.a_template("gpu"))
    spec: Raw = {"affinity": {"podAntiAffinity": rule}}
    apply(field, a_workload("Deployment", "apart", "gpu", replicas=2, **spec))
    try:
        assert len({pod["spec"]["nodeName"] for pod in all_run(field, "apart", 2)}) == 2
    finally:
        delete_workload(field, "deployment", "apart")


def test_a_pod_that_names_its_node_runs_there(field: playground.Playground) -> None:
    field.create(playground.a_template("gpu"))
    pod = playground.a_pod("named", template="gpu", nodeName="e2e-b")
    pod["metadata"]["labels"] = {"app": "named"}
    field.create(pod)
    (ready,) = all_run(field, "named", 1)
    assert ready["spec"]["nodeName"] == "e2e-b"


def test_a_pod_that_names_no_node_there_is_is_told_within_five_seconds(
    field: playground.Playground,
) -> None:
    field.create(playground.a_claim("claim"))
    field.create(playground.a_pod("lost", claims=("claim",), nodeName="nowhere"))
    begun = time.monotonic()
    try:
        (note, *_) = field.told("lost", "NodeNotFound", within_s=5)
        assert "nowhere" in note
        assert time.monotonic() - begun <= 5
    finally:  # no kubelet ends it, and the pod garbage collector takes up to 80 s
        field.delete_by_force("lost")


def test_a_daemon_set_has_a_share_of_a_gpu_on_every_node(
    field: playground.Playground, nodes: tuple[str, ...]
) -> None:
    field.create(playground.a_template("share", deviceClassName=SHARE))
    apply(field, a_workload("DaemonSet", "agent", "share"))
    try:
        ready = all_run(field, "agent", len(nodes))
        assert {pod["spec"]["nodeName"] for pod in ready} == {*nodes}
    finally:
        delete_workload(field, "daemonset", "agent")


def test_a_pod_moved_by_hand_to_another_node_gets_its_claim_there(
    field: playground.Playground,
) -> None:
    """A binding that knows nothing of claims, as of a scheduler without the plugin."""
    field.create(playground.a_claim("claim"))
    pod = playground.a_pod("astray", claims=("claim",), schedulerName="by-hand")
    field.create(pod)
    first = playground.until(lambda: field.device_of("claim"), 20, "the claim is allocated")
    other = "e2e-b" if first and first[0] == "e2e-a" else "e2e-a"
    bind(field.cluster, field.namespace, "astray", other)
    field.running("astray", 20)
    assert field.device_of("claim") is not None
    assert_agrees_with(field, "claim", other)


def assert_agrees_with(field: playground.Playground, claim: str, node: str) -> None:
    assert snapshot.pinned_node(claims.parse(field.claim(claim))) == node


def bind(cluster: api.Cluster, namespace: str, name: str, node: str) -> None:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    cluster.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding))
