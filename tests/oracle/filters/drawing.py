"""A random cluster a seed: nodes, pods on them, pods to place; small, so that things collide."""

from dataclasses import dataclass, field
from typing import Any

from tests.oracle.filters import pieces, volumes

Raw = dict[str, Any]


@dataclass(slots=True)
class Cluster:
    """Raw API objects, by the names that the program reads."""

    nodes: list[Raw] = field(default_factory=list)
    pods: list[Raw] = field(default_factory=list)
    namespaces: list[Raw] = field(default_factory=list)
    claims: list[Raw] = field(default_factory=list)
    volumes: list[Raw] = field(default_factory=list)
    classes: list[Raw] = field(default_factory=list)
    csiNodes: list[Raw] = field(default_factory=list)  # noqa: N815 - as the program reads it
    csiDrivers: list[Raw] = field(default_factory=list)  # noqa: N815 - as the program reads it
    capacities: list[Raw] = field(default_factory=list)
    attachments: list[Raw] = field(default_factory=list)
    incoming: list[Raw] = field(default_factory=list)


_INCOMING = 2
"""Pods to place, each by itself."""


def cluster(seed: int) -> Cluster:
    """The cluster of a seed."""
    draw = pieces.Draw(seed)
    names = [f"n{number}" for number in range(draw.randint(1, 6))]
    created = Cluster(
        nodes=[node(draw, name) for name in names],
        namespaces=[
            {"metadata": {"name": name, "labels": labels}}
            for name, labels in pieces.NAMESPACES.items()
        ],
    )
    for number in range(draw.randint(0, 10)):
        created.pods.append(placed(draw, f"p{number}", names))
    for number in range(_INCOMING):
        created.incoming.append(pod(draw, f"new{number}", names))
    _store(draw, created, names)
    return created


def _store(draw: pieces.Draw, created: Cluster, names: list[str]) -> None:
    """Volumes in every other cluster."""
    if draw.chance(0.5):
        return
    sizes = volumes.Sizes(draw)
    every = [*created.pods, *created.incoming]
    for entry in every:
        if draw.chance(0.6):
            entry["spec"]["volumes"] = volumes.mounts(draw)
    created.claims = volumes.claims(draw, sizes, names)
    created.claims += volumes.own_claims(draw, sizes, every, names)
    created.volumes = volumes.volumes(draw, sizes, created.claims)
    created.classes = volumes.classes(draw)
    created.csiDrivers = volumes.drivers(draw)
    created.csiNodes = volumes.csi_nodes(draw, names)
    created.capacities = volumes.capacities(draw)
    created.attachments = volumes.attachments(draw, created.volumes, names)


def node(draw: pieces.Draw, name: str) -> Raw:
    labels = {}
    if draw.chance(0.9):
        labels[pieces.HOST] = name
    if draw.chance(0.8):
        labels[pieces.ZONE] = draw.choice(("east", "west", "north"))
    if draw.chance(0.4):
        labels["rack"] = draw.choice(("1", "2"))
    if draw.chance(0.5):
        labels["size"] = draw.choice(("1", "2", "10", "-3", "large", "+5", "1_0"))
    spec: Raw = {}
    if draw.chance(0.3):
        spec["taints"] = [pieces.taint(draw) for _ in range(draw.randint(1, 2))]
    if draw.chance(0.1):
        spec["unschedulable"] = True
        if draw.chance(0.8):
            taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            spec["taints"] = [*spec.get("taints", ()), taint]
    allocatable = {
        "cpu": draw.choice(("1", "4", "8", "3500m")),
        "memory": draw.choice(("2Gi", "8Gi", "4G")),
        "pods": draw.choice(("1", "3", "110", "110")),
        "ephemeral-storage": draw.choice(("2Gi", "10Gi")),
    }
    if draw.chance(0.6):
        allocatable |= {"example.com/thing": "3", "hugepages-2Mi": "8Mi"}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(draw: pieces.Draw, name: str, names: list[str]) -> Raw:
    """A pod to place; of each kind of field some have none."""
    namespace = draw.choice((*pieces.NAMESPACES, *pieces.NAMESPACES, pieces.LOST))
    spec: Raw = {
        "containers": pieces.containers(draw, "main", 2),
        "initContainers": pieces.containers(draw, "init", 3) if draw.chance(0.4) else [],
        "priority": draw.choice((0, 0, 5, 10)),
    }
    affinity = pieces.affinity(draw, names)
    if affinity:
        spec["affinity"] = affinity
    if draw.chance(0.45):
        spec["topologySpreadConstraints"] = [
            pieces.constraint(draw) for _ in range(draw.randint(1, 2))
        ]
    if draw.chance(0.3):
        spec["tolerations"] = [pieces.toleration(draw) for _ in range(draw.randint(1, 3))]
    if draw.chance(0.1):
        spec["nodeSelector"] = {pieces.ZONE: draw.choice(("east", "west"))}
    if draw.chance(0.2):
        spec["overhead"] = pieces.amounts(draw, 0.5, ("cpu", "memory"))
    if draw.chance(0.2):
        names_of = ("cpu", "memory", "hugepages-2Mi")
        spec["resources"] = {"requests": pieces.amounts(draw, 0.5, names_of)}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "labels": pieces.labels(draw),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def placed(draw: pieces.Draw, name: str, names: list[str]) -> Raw:
    """A pod on a node, or nominated to one."""
    document = pod(draw, name, names)
    if draw.chance(0.85):
        document["spec"]["nodeName"] = draw.choice(names)
        document["status"]["phase"] = "Running"
        if draw.chance(0.25):
            document["status"] |= pieces.resized(draw, document["spec"])
    else:
        document["status"]["nominatedNodeName"] = draw.choice(names)
    if draw.chance(0.12):
        document["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    return document
