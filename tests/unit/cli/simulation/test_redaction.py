import copy
import json
from typing import Any

from driver import names
from driver.cli.simulation import dump, redaction
from driver.scheduling.snapshot import cluster_state
from tests.properties import drawing
from tests.support.builders import objects

SECRET = "s3cret"  # noqa: S105 - none, a word to be looked for
RAW = dict[str, Any]


def a_talkative_pod() -> RAW:
    pod = objects.a_pod(
        nodeName="node-a", volumes=[{"name": "x", "secret": {"secretName": SECRET}}]
    )
    pod["spec"]["volumes"] += [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {
            "name": "tmp",
            "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": SECRET}}}},
        },
    ]
    pod["metadata"] |= {"annotations": {"a": SECRET, names.DEFRAG: "true"}}
    pod["metadata"]["managedFields"] = [{"manager": SECRET}]
    container = pod["spec"]["containers"][0]
    container |= {"image": SECRET, "args": [SECRET], "command": [SECRET]}
    container |= {"env": [{"name": "A", "value": SECRET}], "envFrom": [{"prefix": SECRET}]}
    container["resources"]["claims"] = [{"name": "claim"}]
    container["ports"] = [{"hostPort": 80, "name": SECRET}]
    pod["spec"]["initContainers"] = [copy.deepcopy(container)]
    pod["spec"]["ephemeralContainers"] = [copy.deepcopy(container)]
    return {"kind": "Pod", "apiVersion": "v1", **pod}


def test_nothing_of_a_pod_is_kept_that_does_not_decide() -> None:
    assert SECRET not in json.dumps(redaction.strip(a_talkative_pod()))


def test_a_stripped_pod_is_read_as_the_whole_one() -> None:
    pod = a_talkative_pod()
    pod["metadata"]["labels"] = {names.QUEUE_LABEL: "vision", names.GANG_LABEL: "train"}
    pod["metadata"]["annotations"] |= {names.GANG_SIZE: "4", names.MAX_RUN_TIME: "30m"}
    pod["spec"] |= {"preemptionPolicy": "Never", "activeDeadlineSeconds": 60}
    short = redaction.strip(pod)
    assert short is not None
    assert dump.read([short]).caches.pods == dump.read([pod]).caches.pods


def test_a_claim_keeps_who_has_what_and_nothing_its_driver_says() -> None:
    status = objects.allocated(
        "node-a", "gpu-0", reserved=[{"resource": "pods", "name": "p", "uid": "u"}]
    )
    claim = objects.a_claim(status={**status, "devices": [{"data": SECRET}]})
    claim["metadata"]["annotations"] = {"a": SECRET, "resource.kubernetes.io/pod-claim-name": "gpu"}
    raw = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", **claim}
    short = redaction.strip(raw)
    assert short is not None
    assert SECRET not in json.dumps(short)
    (previous,) = dump.read([{**raw, "status": status}]).caches.claims.values()
    (after,) = dump.read([short]).caches.claims.values()
    assert after == previous


def test_a_class_keeps_the_policies_it_orders() -> None:
    result = objects.a_class()
    result["metadata"]["annotations"] = {"a": SECRET, names.POLICIES_ANNOTATION: "spread"}
    raw = {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", **result}
    short = redaction.strip(raw)
    assert short is not None
    assert SECRET not in json.dumps(short)
    assert dump.read([short]).caches.classes == dump.read([raw]).caches.classes


def test_the_picture_of_stripped_objects_is_that_of_the_whole_ones() -> None:
    node, labels = objects.a_node(unschedulable=True), {"a": "b"}
    node["metadata"] |= {"labels": labels, "annotations": {"a": SECRET}}
    results = [
        {"kind": "Node", "apiVersion": "v1", **node},
        {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", **objects.a_slice()},
        {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", **objects.a_class()},
        a_talkative_pod(),
    ]
    short = [redaction.strip(result) for result in results]
    drawn = [
        drawing.shown(cluster_state.build("gpu.ration.dev", dump.read(item).caches))
        for item in (results, [entry for entry in short if entry is not None])
    ]
    assert drawn[0] == drawn[1]
    assert (
        dump.read(entry for entry in short if entry).caches.nodes == dump.read(results).caches.nodes
    )


def test_kinds_that_decide_nothing_are_not_kept_at_all() -> None:
    assert redaction.strip({"kind": "Secret", "data": {"a": SECRET}}) is None
    assert {*redaction._KINDS} == {*dump.KINDS}
