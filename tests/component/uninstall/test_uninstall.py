"""Tests of what the chart's hooks run, against an API server in memory."""

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import clock, errors, names
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold
from driver.uninstall import post_delete, pre_delete
from driver.uninstall import report as uninstall_report
from tests.fakes import clock as fake_clock
from tests.fakes.apiserver import faults, server
from tests.support.builders import objects

HERE = Path(__file__).parents[4]
NAMESPACE = "ration-system"
SELECTOR = "app.kubernetes.io/instance=ration"
RELEASE = uninstall_report.Release(names.DRIVER, NAMESPACE, SELECTOR, "plugin", "controller")


@pytest.fixture
def api() -> Iterator[server.ApiServer]:
    with server.ApiServer() as running:
        running.put(gvr.DAEMON_SETS, {"metadata": objects.meta("plugin", NAMESPACE)})
        deployment = {"metadata": objects.meta("controller", NAMESPACE), "spec": {"replicas": 2}}
        running.put(gvr.DEPLOYMENTS, deployment)
        yield running


@pytest.fixture
def kube(api: server.ApiServer, tmp_path: Path) -> client.KubeClient:
    return client.KubeClient.connect(api.kubeconfig(tmp_path), "test")


def put_claim(api: server.ApiServer, name: str, *, held: bool, **spec: Any) -> None:
    """A pod with an allocated claim of its own."""
    raw = objects.a_pod(f"pod-{name}", name, **spec)
    pod = pods.parse(raw)
    users = [allocation_hold.pod_entry(pod), *([allocation_hold.pod_hold(pod)] if held else [])]
    reserved = [claims.render_consumer(user) for user in users]
    api.put(gvr.PODS, raw)
    status = objects.allocated("node-a", "gpu-0", reserved=reserved)
    claim = objects.a_claim(name, status=status)
    claim["metadata"]["finalizers"] = [names.CLAIM_FINALIZER]
    api.put(gvr.RESOURCE_CLAIMS, claim)


def force(kube: client.KubeClient) -> None:
    annotation = {"metadata": {"annotations": {names.UNINSTALL: names.FORCE}}}
    kube.patch(gvr.DAEMON_SETS, "plugin", annotation, namespace=NAMESPACE)


def stop(kube: client.KubeClient, release: uninstall_report.Release = RELEASE) -> list[str]:
    messages: list[str] = []
    pre_delete.PreDelete(kube, release, clock.SystemClock(), messages.append).run()
    return messages


def claim(api: server.ApiServer, name: str) -> claims.Claim:
    return claims.parse(api.read(gvr.RESOURCE_CLAIMS, name, "default") or {})


def replicas(api: server.ApiServer) -> int:
    result = api.read(gvr.DEPLOYMENTS, "controller", NAMESPACE) or {}
    return int(result["spec"]["replicas"])


def test_while_a_claim_is_in_use_nothing_is_changed(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    put_claim(api, "used", held=True, nodeName="node-a")
    put_claim(api, "waiting", held=True)
    with pytest.raises(
        pre_delete.InUse, match="pod default/pod-used on node-a, claim default/used"
    ):
        stop(kube)
    assert {request.method for request in api.requests} == {"GET"}


def test_the_controller_is_stopped_and_unbound_claims_are_free(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    put_claim(api, "waiting", held=True)
    assert stop(kube) == ["Let go of claim default/waiting"]
    assert replicas(api) == 0
    result = claim(api, "waiting")
    assert (result.allocation, result.consumers) == (None, ())
    assert result.finalizers == (names.CLAIM_FINALIZER,)


def test_without_a_plugin_bound_pods_keep_their_allocations_and_nothing_is_refused(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    put_claim(api, "used", held=True, nodeName="node-a")
    put_claim(api, "waiting", held=True)
    release = uninstall_report.Release(
        "other.example.com", NAMESPACE, SELECTOR, "", "controller", managed=(names.DRIVER,)
    )
    assert len(stop(kube, release)) == 2
    assert claim(api, "waiting").allocation is None
    used = claim(api, "used")
    assert used.allocation is not None
    assert [consumer.resource for consumer in used.consumers] == ["pods"]
    assert not [request for request in api.requests if "daemonsets" in request.path]


def test_a_forced_uninstall_only_removes_the_hold_of_a_claim_in_use(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    put_claim(api, "used", held=True, nodeName="node-a")
    force(kube)
    joined = "\n".join(stop(kube))
    assert "pod default/pod-used on node-a" in joined
    result = claim(api, "used")
    assert result.allocation is not None
    assert [consumer.resource for consumer in result.consumers] == ["pods"]


def test_a_failure_after_stopping_the_controller_starts_it_again(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    put_claim(api, "waiting", held=True)
    api.deny_with(lambda request: "no" if "resourceclaims" in request.path else None)
    with pytest.raises(errors.Forbidden):
        stop(kube)
    assert replicas(api) == 2


def test_the_condition_that_the_controller_set_is_taken_off_the_nodes(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    node = objects.a_node("node-a")
    ours = {"type": names.NODE_CONDITION, "status": "True"}
    node["status"]["conditions"].append(ours)
    api.put(gvr.NODES, node)
    stop(kube)
    left = (api.read(gvr.NODES, "node-a") or {})["status"]["conditions"]
    assert [entry["type"] for entry in left] == ["Ready"]


def test_the_condition_that_the_controller_set_is_taken_off_the_pods_that_wait(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    ours = {"type": names.CONDITION_ALLOCATED, "status": "False", "reason": "NoFit", "message": ""}
    conditions = [ours, *objects.refused()["conditions"]]
    api.put(gvr.PODS, objects.a_pod("waits", status={"conditions": conditions}))
    stop(kube)
    left = (api.read(gvr.PODS, "waits", "default") or {})["status"]["conditions"]
    assert [entry["type"] for entry in left] == ["PodScheduled"]


def mark(api: server.ApiServer, kube: client.KubeClient, manager: str, **fields: str) -> None:
    """A manager applies annotations to node-a."""
    uid = (api.read(gvr.NODES, "node-a") or {})["metadata"]["uid"]
    meta = {"name": "node-a", "uid": uid, "annotations": fields}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
    apply = client.PatchType.APPLY
    kube.patch(gvr.NODES, "node-a", body, kind=apply, field_manager=manager)


def test_pods_that_ask_for_nodes_and_marks_of_nodes_go_and_a_users_stay(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.put(gvr.NODES, objects.a_node("node-a"))
    keep = {names.KARPENTER_KEEP: "true"}
    mark(api, kube, "kubectl", **keep)
    mark(api, kube, names.NODES_FIELD_MANAGER, **keep, **{names.AUTOSCALER_KEEP: "true"})
    labels = {names.PLACEHOLDER_LABEL: "h100"}
    for name, namespace, result in (
        ("asks", NAMESPACE, labels),
        ("other", NAMESPACE, {}),
        ("theirs", "team", labels),
    ):
        meta = objects.meta(name, namespace, labels=result)
        api.put(gvr.PODS, {**objects.a_pod(name), "metadata": meta})
    plain = stop(kube)
    assert len(api.all(gvr.PODS)) == 3
    messages: list[str] = []
    release = dataclasses.replace(RELEASE, on_demand=True)
    pre_delete.PreDelete(kube, release, clock.SystemClock(), messages.append).run()
    assert {entry["metadata"]["name"] for entry in api.all(gvr.PODS)} == {"other", "theirs"}
    left = api.read(gvr.NODES, "node-a") or {}
    assert left["metadata"]["annotations"] == keep
    assert messages == [
        *plain,
        "Deleted 1 pods that asked for nodes.",
        "Took the marks off 1 Nodes.",
    ]


def a_template(name: str) -> dict[str, Any]:
    labels = {names.CONVERTED: "true"}
    return {"metadata": objects.meta(name, labels=labels), "spec": {"spec": {}}}


def test_pods_that_our_gate_keeps_waiting_are_named(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    for name, gates in (("ours", [names.ALLOCATION_GATE]), ("other", ["example.com/x"])):
        spec = {"schedulingGates": [{"name": gate} for gate in gates]}
        api.put(gvr.PODS, objects.a_pod(name, **spec))
    messages: list[str] = []
    post_delete.PostDelete(kube, RELEASE, clock.SystemClock(), messages.append).run({})
    (words,) = [message for message in messages if "gate" in message]
    assert "no longer removed: default/ours. Delete them" in words
    assert "default/other" not in words


def test_our_objects_are_deleted_and_foreign_or_used_ones_stay(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    for driver in (names.DRIVER, "gpu.example.com"):
        api.put(gvr.RESOURCE_SLICES, objects.a_slice("node-a", 1, driver))
    for name in ("webhook", "foreign"):
        api.put(gvr.SECRETS, {"metadata": objects.meta(name, NAMESPACE)})
        api.put(gvr.LEASES, {"metadata": objects.meta(name, NAMESPACE)})
    for name in ("seen", "foreign"):
        api.put(gvr.CONFIG_MAPS, {"metadata": objects.meta(name, NAMESPACE)})
    for name in ("unused", "named"):
        api.put(gvr.RESOURCE_CLAIM_TEMPLATES, a_template(name))
    pod = objects.a_pod("pod")
    pod["metadata"]["labels"] = {names.CONVERTED: "true"}
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "named"}]
    api.put(gvr.PODS, pod)
    for name, evicting in (("users", []), ("ours", [{"namespace": "n", "name": "p", "uid": "u"}])):
        spec = {"for": {"pod": "p"}, "evicting": evicting}
        api.put(gvr.RESERVATIONS, {"metadata": objects.meta(name), "spec": spec})
    messages: list[str] = []
    post_delete.PostDelete(kube, RELEASE, clock.SystemClock(), messages.append).run(
        {gvr.SECRETS: "webhook", gvr.LEASES: "webhook", gvr.CONFIG_MAPS: "seen"}
    )
    assert [entry["metadata"]["name"] for entry in api.all(gvr.RESERVATIONS)] == ["users"]
    assert [entry["spec"]["driver"] for entry in api.all(gvr.RESOURCE_SLICES)] == [
        "gpu.example.com"
    ]
    for kind in (gvr.SECRETS, gvr.LEASES, gvr.CONFIG_MAPS):
        assert [entry["metadata"]["name"] for entry in api.all(kind)] == ["foreign"]
    (left,) = api.all(gvr.RESOURCE_CLAIM_TEMPLATES)
    assert left["metadata"]["name"] == "named"
    assert messages == [
        "1 templates stay: pods still name them",
        "Deleted 1 ResourceSlices, 1 Reservations and 1 templates.",
    ]


def put_rule(api: server.ApiServer, name: str, **labels: str) -> None:
    meta = objects.meta(name, None, labels=labels)
    spec = {"taint": {"key": names.ALLOCATOR_TAINT, "effect": "NoSchedule"}}
    api.put(gvr.DEVICE_TAINT_RULES, {"metadata": meta, "spec": spec})


def test_the_controllers_taint_rules_go_thirty_seconds_after_it(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    put_rule(api, "ours", **{names.ALLOCATOR_RULE: "true"})
    put_rule(api, "cordon", **{names.CORDON: "true"})
    time, messages = fake_clock.FakeClock(), list[str]()
    release = dataclasses.replace(RELEASE, allocator_rules=True)
    post_delete.PostDelete(kube, release, time, messages.append).run({})
    assert [rule["metadata"]["name"] for rule in api.all(gvr.DEVICE_TAINT_RULES)] == ["cordon"]
    assert time.elapsed_s >= 30.0
    assert messages[0] == "Deleted 1 DeviceTaintRules: kube-scheduler allocates again."


def test_without_the_api_of_taint_rules_the_rest_is_deleted(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.faults.add(faults.Answer(404, "NotFound"), lambda r: "devicetaintrules" in r.path)
    messages: list[str] = []
    release = dataclasses.replace(RELEASE, allocator_rules=True)
    post_delete.PostDelete(kube, release, fake_clock.FakeClock(), messages.append).run({})
    assert messages == ["Deleted 0 ResourceSlices, 0 Reservations and 0 templates."]


def put_clearing(api: server.ApiServer, **ready: bool) -> None:
    """The DaemonSet and its pods, by node."""
    status = {"desiredNumberScheduled": len(ready), "observedGeneration": 1}
    meta = objects.meta("clearing", NAMESPACE)
    api.put(gvr.DAEMON_SETS, {"metadata": meta, "status": status})
    labels = {
        "app.kubernetes.io/instance": "ration",
        "app.kubernetes.io/component": "clearing",
    }
    for node, done in ready.items():
        ended = {"state": {"terminated": {"message": "a plugin runs here\n"}}}
        api.put(
            gvr.PODS,
            {
                "metadata": objects.meta(f"on-{node}", NAMESPACE, labels=labels),
                "spec": {"nodeName": node},
                "status": {
                    "conditions": [{"type": "Ready", "status": str(done)}],
                    "initContainerStatuses": [] if done else [ended],
                },
            },
        )


TOO_LATE = (
    "Not cleared within 1 s: two (a plugin runs here). What stays there is taken over by the next "
    "installation."
)


@pytest.mark.parametrize(("second", "words"), [(True, "Every node is cleared."), (False, TOO_LATE)])
def test_nodes_that_are_not_cleared_in_time_are_named(
    api: server.ApiServer, kube: client.KubeClient, words: str, *, second: bool
) -> None:
    put_clearing(api, one=True, two=second)
    messages: list[str] = []
    deleted = post_delete.PostDelete(kube, RELEASE, clock.SystemClock(), messages.append)
    deleted.wait_for_nodes("clearing", 1.0)
    assert messages == [words]


def test_the_process_ends_with_an_error_and_says_why(api: server.ApiServer, tmp_path: Path) -> None:
    put_claim(api, "used", held=False, nodeName="node-a")
    command = (sys.executable, "-m", "driver.uninstall", "stop")
    flags = (
        f"--driver-name={names.DRIVER}",
        f"--namespace={NAMESPACE}",
        f"--selector={SELECTOR}",
        "--plugin=plugin",
        f"--kubeconfig={api.kubeconfig(tmp_path)}",
    )
    done = subprocess.run((*command, *flags), cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("Not uninstalled, and nothing was changed: 1 claim is in use")
    assert done.stderr == ""
