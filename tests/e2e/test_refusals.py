"""Tests of what the plugin says of claims, and what follows: a nudge, an eviction, or nothing."""

import time
from collections.abc import Iterator

import pytest

from driver import errors
from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import playground
from tests.e2e.deployments import Raw, a_deployment, apply, evictions, without

NODE, SCHEDULED = "e2e-a", "e2e-r"
WRONG = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "GpuConfig", "shape": "round"}
WATCHED_S = 40.0


@pytest.fixture(scope="module")
def scheduler_node(cluster: api.Cluster) -> Iterator[str]:
    """kube-scheduler allocates here, which reads no configuration: the plugin is the first to."""
    try:
        playground.add_node(cluster, SCHEDULED, allocator="scheduler")
        yield SCHEDULED
    finally:
        if SCHEDULED in cluster.nodes():
            cluster.remove_node(SCHEDULED)


@pytest.mark.smoke
def test_a_prepared_claim_says_so_under_the_plugins_name(field: playground.Playground) -> None:
    field.create(playground.a_claim("mine"), playground.a_pod("pod", claims=("mine",)))
    field.running("pod")
    assert field.says("mine", "Ready", "True")[1] == "Prepared"
    claim = field.claim("mine")
    (ours,) = [
        managed_field
        for managed_field in claim["metadata"]["managedFields"]
        if managed_field["manager"] == "ration-kubeletplugin"
    ]
    assert (ours["operation"], ours["subresource"]) == ("Apply", "status")
    (entry,) = claim["status"]["devices"]
    assert (entry["driver"], entry["pool"]) == place_of(claim)
    field.delete_pod("pod")
    playground.until(lambda: "devices" not in field.claim("mine")["status"], 20, "nothing is left")


def place_of(claim: Raw) -> tuple[str, str]:
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    return result["driver"], result["pool"]


def test_a_pod_that_was_refused_runs_soon_after_the_cause_has_ended(
    field: playground.Playground,
) -> None:
    root = field.cluster.node_dir(NODE) / "gpu" / "driver-root"
    with without("libcuda.so", root):
        field.create(
            playground.a_claim("late"),
            playground.a_pod("pod", claims=("late",), nodeSelector=playground.on(NODE)),
        )
        _, reason, message = field.says("late", "Ready", "False")
        assert reason == "DriverNotReady"
        assert "libcuda" in message
        assert "Stalled" not in field.conditions("late")
        time.sleep(6)
        assert field.pod("pod")["status"]["phase"] == "Pending"
        assert "annotations" not in field.pod("pod")["metadata"]
    ended = time.monotonic()
    field.running("pod", 30)
    took_s = time.monotonic() - ended
    field.says("late", "Ready", "True")
    assert "ration.dev/prepare-again" in field.pod("pod")["metadata"]["annotations"]
    assert took_s < 30
    print(f"running {took_s:.1f} s after the cause had ended")  # noqa: T201 - what was measured


def wrong(body: Raw) -> Raw:
    """A claim, or a template of one, with a configuration that cannot be read."""
    spec = body["spec"].get("spec", body["spec"])
    opaque = {"driver": "gpu.ration.dev", "parameters": WRONG}
    spec["devices"]["config"] = [{"opaque": opaque}]
    return body


def test_unpreparable_pods_are_evicted_with_backoff_and_bare_pods_are_not(
    field: playground.Playground, scheduler_node: str
) -> None:
    apply(field, wrong(playground.a_claim("bare")), wrong(playground.a_template("odd")))
    field.create(
        playground.a_pod("bare", claims=("bare",), nodeSelector=playground.on(scheduler_node))
    )
    apply(field, a_deployment("odd", scheduler_node))
    try:
        _, reason, message = field.says("bare", "Stalled", "True")
        assert (reason, "shape: is not a field" in message) == ("ConfigInvalid", True)
        uid = field.pod("bare")["metadata"]["uid"]
        playground.until(lambda: evictions(field), 40, "a pod of the Deployment is evicted")
        time.sleep(WATCHED_S)
        messages = evictions(field)
        # At once, then after 10 s and 20 s more; the next one comes 40 s later.
        assert 2 <= len(messages) <= 4
        assert all(
            "ReplicaSet web-" in message and "ConfigInvalid" in message for message in messages
        )
        assert field.pod("bare")["metadata"]["uid"] == uid
        assert field.events("bare", "PodEvicted") == []
        assert field.conditions("bare")["Ready"][:2] == ("False", "ConfigInvalid")
    finally:
        field.cluster.kubectl("delete", "deployment", "web", "-n", field.namespace)


def test_neither_a_stale_leader_evicts_nor_a_true_one_writes_more_than_annotations(
    field: playground.Playground,
) -> None:
    field.create(playground.a_pod("pod", command="sleep 3600"))
    pod = field.running("pod")
    kube = client.KubeClient.connect(field.cluster.controller_kubeconfig, "ration-e2e")
    lease = field.kube.get(gvr.LEASES, "ration-controller", "ration-system")["spec"]
    term = f"ration-controller/{lease['holderIdentity']}/{lease['leaseTransitions']}"
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "pod", "namespace": field.namespace},
    }

    def evict(manager: str) -> None:
        kube.create(
            gvr.PODS,
            eviction,
            field.namespace,
            subresource="eviction",
            name="pod",
            field_manager=manager,
        )

    def write(body: Raw) -> None:
        kube.patch(gvr.PODS, "pod", body, namespace=field.namespace, field_manager=term)

    nudge = {"metadata": {"annotations": {"ration.dev/prepare-again": "2026-11-21T09:00:00Z"}}}
    for manager in ("ration-controller/other/0", "any"):
        with pytest.raises(errors.Forbidden, match="does not hold the Lease"):
            evict(manager)
    for body in (
        {"metadata": {"annotations": {"example.com/note": "x"}}},
        {"metadata": {"labels": {"app": "x"}}},
        {"metadata": {"finalizers": ["example.com/stay"]}},
        {"spec": {"activeDeadlineSeconds": 1}},
    ):
        with pytest.raises(errors.Forbidden, match="no more of a pod than annotations"):
            write(body)
    write(nudge)
    assert field.pod("pod")["metadata"]["uid"] == pod["metadata"]["uid"]
    evict(term)
    playground.until(lambda: field.find("pod") is None, 40, "the pod is evicted")


def test_a_plugin_may_say_nothing_of_claims_on_other_nodes_nor_of_other_drivers(
    field: playground.Playground,
) -> None:
    field.create(
        playground.a_claim("there"),
        playground.a_pod("pod", claims=("there",), nodeSelector=playground.on("e2e-b")),
    )
    field.running("pod")
    field.says("there", "Ready", "True")
    config = field.cluster.node_dir(NODE)
    (kubeconfig,) = config.rglob("plugin.kubeconfig")
    kube = client.KubeClient.connect(kubeconfig, "ration-e2e")
    claim = field.claim("there")
    (entry,) = claim["status"]["devices"]
    entry["conditions"][0]["message"] = "forged"
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "there", "namespace": field.namespace},
        "status": {"devices": [entry]},
    }
    # The right to write on every node is what it lacks; the server answers 422 for it.
    with pytest.raises(errors.Invalid, match="arbitrary-node:patch"):
        kube.patch(
            gvr.RESOURCE_CLAIMS,
            "there",
            body,
            namespace=field.namespace,
            subresource="status",
            kind=client.PatchType.APPLY,
            field_manager="ration-kubeletplugin",
            force=True,
        )
    assert field.conditions("there")["Ready"][2] != "forged"
