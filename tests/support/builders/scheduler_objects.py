"""Raw objects for tests of the scheduler: pods with their claim, gangs, queues, reservations."""

from typing import Any

from driver import names
from tests.support.builders import objects


def a_queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Queue", "metadata": objects.meta(name, None, generation=1), "spec": spec}


def a_pod_of(queue: str, name: str, **spec: Any) -> list[dict[str, Any]]:
    pod = objects.a_pod(name, f"{name}-gpu", **spec)
    pod["metadata"]["labels"] = {names.QUEUE_LABEL: queue}
    return [objects.a_claim(f"{name}-gpu"), pod]


def a_gang(count: int, **annotations: str) -> list[dict[str, Any]]:
    results = []
    for index in range(count):
        results += [
            objects.a_claim(f"m{index}-gpu"),
            a_member(f"m{index}", str(count), **annotations),
        ]
    return results


def a_member(name: str, size: str = "2", **annotations: str) -> dict[str, Any]:
    pod = objects.a_pod(name, f"{name}-gpu")
    pod["metadata"]["labels"] = {names.GANG_LABEL: "train"}
    fields = {names.GANG_SIZE: size} if size else {}
    pod["metadata"]["annotations"] = {**fields, **annotations}
    return pod


def a_pod(name: str, priority: int = 0, *, queue: str = "", **more: Any) -> list[dict[str, Any]]:
    pod = objects.a_pod(name, f"{name}-gpu", priority=priority, **more.pop("spec", {}))
    pod["metadata"]["labels"] = {names.QUEUE_LABEL: queue} if queue else {}
    pod["metadata"]["labels"] |= more.pop("labels", {})
    pod["metadata"]["annotations"] = more.pop("annotations", {})
    owner = {"kind": "Job", "name": f"{name}-job", "uid": objects.uid_of(f"{name}-job")}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return [objects.a_claim(f"{name}-gpu"), pod]


def a_gang_member(name: str, **annotations: str) -> list[dict[str, Any]]:
    claim, pod = a_pod(name, annotations={names.GANG_SIZE: "2", **annotations})
    pod["metadata"]["labels"] = {names.GANG_LABEL: "train"}
    return [claim, pod]


def a_reservation(name: str = "kept", count: int = 1, **spec: Any) -> dict[str, Any]:
    request = {"requests": [objects.a_request("gpu", spec.pop("gpus", 1))]}
    return {
        "kind": "Reservation",
        "metadata": objects.meta(name, creationTimestamp="2026-11-21T09:00:00Z"),
        "spec": {"for": {"pod": "mine"}, "count": count, "devices": request, **spec},
    }


def a_pod_group(min_count: int = 0, **spec: Any) -> dict[str, Any]:
    """The PodGroup `train` of Kubernetes' own; without a count each of its pods runs by itself."""
    policy = {"gang": {"minCount": min_count}} if min_count else {"basic": {}}
    return {"metadata": objects.meta("train"), "spec": {"schedulingPolicy": policy, **spec}}


def a_pod_of_group(name: str, *claims: str, **spec: Any) -> dict[str, Any]:
    """A pod of that PodGroup."""
    return objects.a_pod(name, *claims, schedulingGroup={"podGroupName": "train"}, **spec)
