"""A GPU fails under a gang, on a real cluster: all of the gang runs elsewhere, and nothing else."""

import time
from typing import Any

from driver import names
from driver.kube import gvr
from hack.cluster import errors
from simulator import control
from tests.e2e import playground

Raw = playground.Raw
WHOLE = "4294967295"
WITHIN_S = 60.0


def a_job(name: str, size: int, **annotations: str) -> Raw:
    """Pods that are made again ten seconds after they were evicted: each index has its pause."""
    pod = playground.a_pod("any", template="gpu")
    fields = {names.GANG_SIZE: str(size), **annotations}
    meta = {"labels": {names.GANG_LABEL: name}, "annotations": fields}
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": size,
            "completions": size,
            "backoffLimitPerIndex": 5,
            "podFailurePolicy": {"rules": [ignored]},
            "template": {"metadata": meta, "spec": {**pod["spec"], "restartPolicy": "Never"}},
        },
    }


def members(field: playground.Playground, name: str) -> dict[str, str]:
    """The pods that run, by name, with the GPU of each."""
    items = field.kube.list(
        gvr.PODS, namespace=field.namespace, label_selector=f"{names.GANG_LABEL}={name}"
    ).items
    alive = [
        item["metadata"]["name"]
        for item in items
        if item["status"].get("phase") == "Running"
        and not item["metadata"].get("deletionTimestamp")
    ]
    return {entry: gpu for entry in alive if (gpu := _gpu(field, entry))}


def _gpu(field: playground.Playground, name: str) -> str:
    try:
        return next(iter(field.uuids(name)), "")
    except errors.CommandFailedError:
        return ""


def start(field: playground.Playground, name: str, size: int, **annotations: str) -> dict[str, str]:
    body = a_job(name, size, **annotations)
    field.kube.create(gvr.JOBS, body, field.namespace)
    return playground.until(
        lambda: result if len(result := members(field, name)) == size else {},
        90,
        f"gang {name} runs",
    )


def fails(field: playground.Playground, pod: str, uuid: str) -> None:
    """Xid 79: the GPU has fallen off the bus."""
    node = field.pod(pod)["spec"]["nodeName"]
    base = field.cluster.node_dir(node) / "gpu"
    control.send(base, "xid", uuid, "79", WHOLE, WHOLE)
    control.send(base, "recovery", uuid, "NODE_REBOOT")


def recovers(field: playground.Playground, node: str, uuid: str) -> None:
    base = field.cluster.node_dir(node) / "gpu"
    control.send(base, "recovery", uuid, "NONE")


def evicted(field: playground.Playground) -> dict[str, str]:
    events: Any = field.kube.list(gvr.EVENTS, namespace=field.namespace).items
    return {
        event["regarding"]["name"]: event["note"]
        for event in events
        if event["reason"] == "Preempted" and event["regarding"]["kind"] == "Pod"
    }


def test_xid_79_moves_the_whole_gang_to_other_gpus_and_evicts_nothing_else(
    field: playground.Playground,
) -> None:
    field.create(playground.a_template("gpu", 1), playground.a_pod("bystander", template="gpu"))
    field.running("bystander")
    previous = start(field, "train", 4)
    other = start(field, "other", 2)
    victim, uuid = min(previous.items())
    node = field.pod(victim)["spec"]["nodeName"]
    began = time.monotonic()
    fails(field, victim, uuid)
    try:

        def moved() -> dict[str, str]:
            now = members(field, "train")
            return now if len(now) == 4 and not now.keys() & previous.keys() else {}

        after = playground.until(moved, WITHIN_S, "the gang runs elsewhere")
        took = time.monotonic() - began
        assert took < WITHIN_S
        assert uuid not in after.values()
        assert len({*after.values()}) == 4
        assert evicted(field).keys() == previous.keys()
        assert all("failed (" in words and "xid 79" in words for words in evicted(field).values())
        assert members(field, "other") == other
        assert field.pod("bystander")["status"]["phase"] == "Running"
    finally:
        recovers(field, node, uuid)
        field.cluster.kubectl("-n", field.namespace, "delete", "jobs", "--all")
        playground.until(lambda: not members(field, "train"), 60, "the jobs are gone")
