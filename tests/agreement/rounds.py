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
_BOUNCED = 0.25
"""Share of workloads that are scaled down to one replica and up again at the end."""
RULES = ("plain", "spread", "apart", "apart-from", "near", "host-port", "volume")
DEPLOYMENT, STATEFUL_SET, JOB = "Deployment", "StatefulSet", "Job"
_KINDS = (DEPLOYMENT, DEPLOYMENT, DEPLOYMENT, STATEFUL_SET, JOB)
_JOB_S = 3
LANE_LABEL = "ration.dev/lane"
"""The node label by which each lane of the campaign has nodes of its own."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload of a round: what its pods ask for, and the rule that they are placed by.

    `replicas` are its first ones, `scaled` those after the scale-up; of a Job the parallelism and
    the completions. `updated`: rolled over to a new template; `bounced`: scaled down and up again.
    """

    name: str
    kind: str
    replicas: int
    scaled: int
    device: str
    rule: str
    port: int
    updated: bool = False
    bounced: bool = False
    lane: str = ""

    @property
    def runs_on(self) -> bool:
        """Tell whether its pods run until they are deleted."""
        return self.kind != JOB


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
            workload = _workload(source, f"r{number}-w{index}", nodes, free)
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
    if workload.kind != DEPLOYMENT or workload.device == "two":
        return True
    return workload.rule in {"apart", "host-port", "volume", "near"}


def _workload(source: random.Random, prefix: str, nodes: int, free: int) -> Workload | None:
    """Draw a workload of at most `free` GPUs; None where that is too little for what was drawn."""
    rule, device, kind = source.choice(RULES), source.choice([*DEVICES]), source.choice(_KINDS)
    most = nodes if rule in {"apart", "host-port", "volume"} else 8
    each = DEVICES[device][1]
    # Shares and parts of one GPU: seven, the surge of an update beside them.
    most = min(most, free // each - 1 if device in {"one", "two"} else 7)
    first = source.randint(2, 4)
    scaled = source.randint(first, 8)
    port = 20_000 + source.randint(0, 999)
    # A volume that was released is not bound again: its pods come once.
    again = kind != JOB and rule != "volume"
    updated = source.random() < _UPDATED and again
    bounced = source.random() < _BOUNCED and again
    if most < 1 or free < _LEAST_FREE:
        return None
    sizes = (min(first, most), min(scaled, most))
    return Workload(f"{prefix}-{rule}", kind, *sizes, device, rule, port, updated, bounced)


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
    return [*_companions(workload, node_names), template, workload_object(workload)]


def workload_object(workload: Workload, replicas: int | None = None, revision: int = 1) -> Raw:
    """Return the Deployment, StatefulSet or Job with so many replicas, of a revision."""
    labels = {"app": workload.name}
    template = {
        "metadata": {"labels": {**labels, "revision": str(revision)}},
        "spec": {**_pod(workload), **_rule(workload)},
    }
    metadata = {"name": workload.name}
    if workload.kind == JOB:
        template["spec"]["restartPolicy"] = "Never"
        sizes = {"parallelism": workload.replicas, "completions": workload.scaled}
        spec: Raw = {**sizes, "backoffLimit": 0, "template": template}
        return {"apiVersion": "batch/v1", "kind": JOB, "metadata": metadata, "spec": spec}
    spec = {
        "replicas": workload.replicas if replicas is None else replicas,
        "selector": {"matchLabels": labels},
        "template": template,
    }
    if workload.kind == STATEFUL_SET:
        spec["serviceName"] = workload.name
    else:
        rolling = {"maxSurge": 0, "maxUnavailable": 1} if is_tight(workload) else {"maxSurge": 1}
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"apiVersion": "apps/v1", "kind": workload.kind, "metadata": metadata, "spec": spec}


def _pod(workload: Workload) -> Raw:
    container: Raw = {
        "name": "main",
        "image": "ration.local/workload:latest",
        "imagePullPolicy": "Never",
        "command": ["sleep", "3600" if workload.runs_on else str(_JOB_S)],
        "resources": {"requests": {"cpu": "5m"}, "claims": [{"name": "gpu"}]},
    }
    if workload.rule == "host-port":
        container["ports"] = [{"containerPort": 80, "hostPort": workload.port}]
    spec: Raw = {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": _lane(workload),
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


def companion(workload: Workload, away_from: str | None = None) -> Raw:
    """Return the Deployment of one pod without GPUs that others are near, or apart from.

    With `away_from` its pod leaves that node.
    """
    labels = {"companion": workload.name}
    container = {
        "name": "main",
        "image": "ration.local/workload:latest",
        "imagePullPolicy": "Never",
        "command": ["sleep", "3600"],
    }
    spec: Raw = {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": _lane(workload),
        "containers": [container],
    }
    if away_from is not None:
        expression = {"key": HOSTNAME, "operator": "NotIn", "values": [away_from]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["affinity"] = {"nodeAffinity": required}
    return {
        "apiVersion": "apps/v1",
        "kind": DEPLOYMENT,
        "metadata": {"name": f"{workload.name}-companion"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _lane(workload: Workload) -> Raw:
    return {LANE_LABEL: workload.lane} if workload.lane else {}


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


def volume_name(workload: Workload, node: str) -> str:
    """Return the name of the PersistentVolume of a node."""
    return f"agreement-{workload.name}-{node}"


def _volume(workload: Workload, node: str) -> Raw:
    expression = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(workload, node),
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
