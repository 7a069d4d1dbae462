"""Rounds of workloads drawn from a seed, each of which fits by arithmetic. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Raw = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
DEVICES = {
    "one": ("gpu.ration.dev", 1),
    "two": ("gpu.ration.dev", 2),
    "mps": ("gpu-mps.ration.dev", 1),
    "time-slice": ("gpu-timeslice.ration.dev", 1),
    "mig": ("gpu-mig.ration.dev", 1),
}
"""Class and count of what a pod asks for, by its name in a round."""
GPUS = 8
"""GPUs of a node."""
_LEAST_FREE = 2
_UPDATED = 0.5
"""Share of workloads that are rolled over in the middle."""
RULES = ("plain", "spread", "apart", "apart-from", "near", "host-port", "volume")


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment of a round: what its pods ask for, and the rule that they are placed by."""

    name: str
    replicas: int
    device: str
    rule: str
    port: int
    scaled: int
    """Replicas after the scale-up."""
    updated: bool
    """Whether it is rolled over to a new template in the middle."""


@dataclass(frozen=True, slots=True)
class Round:
    """Workloads that live at the same time, in one namespace."""

    number: int
    workloads: tuple[Workload, ...]


def drawn(seed: int, count: int, nodes: int) -> Iterator[Round]:
    """Yield rounds for `nodes` of GPUS each.

    Workloads of a round ask for no more together than one node has, so that each rule can be kept
    wherever the others are.
    """
    source = random.Random(seed)
    for number in range(count):
        free = GPUS
        workloads: list[Workload] = []
        for index in range(source.randint(1, 3)):
            workload = _workload(source, index, nodes, free)
            if workload is not None:
                workloads.append(workload)
                free -= cost(workload)
        yield Round(number, tuple(workloads))


def cost(workload: Workload) -> int:
    """Return the GPUs that a workload takes at most, the surge of its update included."""
    if workload.device in {"one", "two"}:
        each = DEVICES[workload.device][1]
        return each * (workload.scaled + (0 if is_tight(workload) else 1))
    return 2


def is_tight(workload: Workload) -> bool:
    """True where an update cannot have a pod more: the rule, or the node, has no room for it."""
    return workload.rule in {"apart", "host-port", "volume", "near"} or workload.device == "two"


def _workload(source: random.Random, index: int, nodes: int, free: int) -> Workload | None:
    """Draw a workload of at most `free` GPUs; None where that is too little for what was drawn."""
    rule, device = source.choice(RULES), source.choice([*DEVICES])
    most = nodes if rule in {"apart", "host-port", "volume"} else 8
    each = DEVICES[device][1]
    # Shares and parts of one GPU: seven, the surge of an update beside them.
    most = min(most, free // each - 1 if device in {"one", "two"} else 7)
    first = source.randint(2, 4)
    scaled = source.randint(first, 8)
    port = 20_000 + 10 * index + source.randint(0, 9)
    updated = source.random() < _UPDATED and rule != "volume"
    if most < 1 or free < _LEAST_FREE:
        return None
    name = f"w{index}-{rule}"
    return Workload(name, min(first, most), device, rule, port, min(scaled, most), updated)


def objects(workload: Workload, node_names: tuple[str, ...]) -> list[Raw]:
    """Return the API objects of a workload, in the order in which they are applied."""
    device_class, count = DEVICES[workload.device]
    exactly = {"deviceClassName": device_class, "count": count}
    template: Raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": workload.name},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }
    return [*_companions(workload, node_names), template, deployment(workload)]


def deployment(workload: Workload, replicas: int | None = None, revision: int = 1) -> Raw:
    """Return the Deployment with so many replicas, of a revision of its template."""
    labels = {"app": workload.name}
    rolling = {"maxSurge": 0, "maxUnavailable": 1} if is_tight(workload) else {"maxSurge": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload.name},
        "spec": {
            "replicas": workload.replicas if replicas is None else replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {
                "metadata": {"labels": {**labels, "revision": str(revision)}},
                "spec": {**_pod(workload), **_rule(workload)},
            },
        },
    }


def _pod(workload: Workload) -> Raw:
    container: Raw = {
        "name": "main",
        "image": "ration.local/workload:latest",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", "exec sleep 3600"],
        "resources": {"requests": {"cpu": "5m"}, "claims": [{"name": "gpu"}]},
    }
    if workload.rule == "host-port":
        container["ports"] = [{"containerPort": 80, "hostPort": workload.port}]
    spec: Raw = {
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": workload.name}],
    }
    if workload.rule == "volume":
        source = {"ephemeral": {"volumeClaimTemplate": {"spec": _volume_claim(workload)}}}
        spec["volumes"] = [{"name": "data", **source}]
    return spec


def _rule(workload: Workload) -> Raw:
    """Return the placement rule of the pods."""
    itself = {"matchLabels": {"app": workload.name}}
    match workload.rule:
        case "spread":
            constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "labelSelector": itself}
            constraint["whenUnsatisfiable"] = "DoNotSchedule"
            return {"topologySpreadConstraints": [constraint]}
        case "apart":
            return {"affinity": {"podAntiAffinity": _required(itself)}}
        case "apart-from":
            other = {"matchLabels": {"companion": workload.name}}
            return {"affinity": {"podAntiAffinity": _required(other)}}
        case "near":
            other = {"matchLabels": {"companion": workload.name}}
            return {"affinity": {"podAffinity": _required(other)}}
        case _:
            return {}


def _required(selector: Raw) -> Raw:
    term = {"topologyKey": HOSTNAME, "labelSelector": selector}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _companions(workload: Workload, node_names: tuple[str, ...]) -> list[Raw]:
    """Return what a rule refers to: a pod to be near or apart from, or volumes of the nodes."""
    if workload.rule in {"near", "apart-from"}:
        return [companion(workload)]
    if workload.rule == "volume":
        return [_volume(workload, name) for name in node_names]
    return []


def companion(workload: Workload) -> Raw:
    """Return the Deployment of one pod without GPUs that others are near, or apart from."""
    labels = {"companion": workload.name}
    container = {
        "name": "main",
        "image": "ration.local/workload:latest",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", "exec sleep 3600"],
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{workload.name}-companion"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _volume_claim(workload: Workload) -> Raw:
    return {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": f"agreement-{workload.name}",
        "resources": {"requests": {"storage": "1Mi"}},
    }


def storage_class(workload: Workload) -> Raw:
    """Return the class whose volumes are bound when a pod is placed."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": f"agreement-{workload.name}"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(workload: Workload, node: str) -> Raw:
    expression = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"agreement-{workload.name}-{node}",
            "labels": {"ration.dev/agreement": workload.name},
        },
        "spec": {
            "capacity": {"storage": "1Mi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": f"agreement-{workload.name}",
            "hostPath": {"path": "/tmp"},
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            },
        },
    }
