"""Random volumes, claims, classes and drivers of a cluster, and what pods mount of them.

Sizes are all different: of volumes of one size kube-scheduler takes any.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.oracle.filters import pieces

Raw = dict[str, Any]
_CLAIMS = 5
"""Of each namespace; pods may name one more, which is not there."""
_CLASSES = ("wait", "now", "hand")
_DRIVERS = ("a.csi", "b.csi")
_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod")
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_SPACES = (*pieces.NAMESPACES, pieces.LOST)


class Sizes:
    """Quantities of which none comes twice."""

    def __init__(self, draw: pieces.Draw) -> None:
        numbers = draw.sample(range(1, 4000), 200)
        self._next: Iterator[int] = iter(numbers)

    def one(self) -> str:
        """The next one."""
        return f"{next(self._next)}Mi"


def mounts(draw: pieces.Draw) -> list[Raw]:
    """`spec.volumes` of a pod."""
    created: list[Raw] = []
    for number in draw.sample(range(_CLAIMS + 1), draw.choice((1, 1, 2, 3))):
        if number == _CLAIMS and draw.chance(0.5):
            continue
        source = {"claimName": f"c{number}"}
        created.append({"name": f"v{number}", "persistentVolumeClaim": source})
    if draw.chance(0.2):
        created.append({"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    if draw.chance(0.3):
        created.append({"name": "disk", **disk(draw)})
    return created or [{"name": "tmp", "emptyDir": {}}]


def disk(draw: pieces.Draw) -> Raw:
    """A volume source of an in-tree kind."""
    read_only = draw.chance(0.5)
    kind = draw.choice(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))
    name = draw.choice(("x", "y"))
    sources: dict[str, Raw] = {
        "gcePersistentDisk": {"pdName": name},
        "awsElasticBlockStore": {"volumeID": name},
        "iscsi": {"targetPortal": "10.0.0.9", "iqn": name, "lun": 0},
        "rbd": {
            "monitors": draw.some(("m1", "m2", "m3"), 2) or ["m1"],
            "image": name,
            "pool": draw.choice(("rbd", "other")),
        },
    }
    return {kind: {**sources[kind], "readOnly": read_only}}


def claims(draw: pieces.Draw, sizes: Sizes, nodes: Sequence[str]) -> list[Raw]:
    """Return claims with the same names in every namespace; the first ones are mostly bound."""
    created = []
    for space in _SPACES:
        for number in range(_CLAIMS):
            created.append(claim(draw, sizes, space, f"c{number}", nodes))
            if draw.chance(0.5):
                _bind(draw, created[-1], f"{space}-{number}")
    return created


def claim(draw: pieces.Draw, sizes: Sizes, space: str, name: str, nodes: Sequence[str]) -> Raw:
    """A claim that is not bound."""
    spec: Raw = {"accessModes": [draw.choice(_MODES)], "resources": {}}
    if draw.chance(0.9):
        spec["resources"] = {"requests": {"storage": sizes.one()}}
    if draw.chance(0.9):
        spec["storageClassName"] = draw.choice((*_CLASSES, "wait", "none"))
    if draw.chance(0.1):
        spec["volumeMode"] = "Block"
    if draw.chance(0.1):
        spec["selector"] = {"matchLabels": {"kind": "fast"}}
    if draw.chance(0.1):
        spec["volumeAttributesClassName"] = "gold"
    meta: Raw = {"name": name, "namespace": space, "uid": f"{space}-{name}", "annotations": {}}
    if draw.chance(0.1):
        meta["annotations"]["volume.kubernetes.io/selected-node"] = draw.choice(nodes)
    if draw.chance(0.04):
        meta["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    return {
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Lost" if draw.chance(0.03) else "Pending"},
    }


def _bind(draw: pieces.Draw, claim: Raw, volume: str) -> None:
    claim["spec"]["volumeName"] = volume
    if draw.chance(0.9):
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"


def own_claims(
    draw: pieces.Draw, sizes: Sizes, pods: Sequence[Raw], nodes: Sequence[str]
) -> list[Raw]:
    """Claims of generic ephemeral volumes; of a pod to place it may be another's."""
    created = []
    for pod in pods:
        if not any("ephemeral" in volume for volume in pod["spec"].get("volumes", ())):
            continue
        meta = pod["metadata"]
        entry = claim(draw, sizes, meta["namespace"], f"{meta['name']}-own", nodes)
        placed = "nodeName" in pod["spec"] or "nominatedNodeName" in pod["status"]
        owner = meta["uid"] if placed or draw.chance(0.9) else "another"
        reference = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": owner}
        entry["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
        created.append(entry)
    return created


def volumes(draw: pieces.Draw, sizes: Sizes, bound: Sequence[Raw]) -> list[Raw]:
    """Return those that claims are bound to, but for some, and a few that are free."""
    names = [obj["spec"]["volumeName"] for obj in bound if "volumeName" in obj["spec"]]
    created = [volume(draw, sizes, name) for name in names if draw.chance(0.95)]
    unbound = [obj for obj in bound if "volumeName" not in obj["spec"]]
    for number in range(draw.randint(0, 5)):
        entry = volume(draw, sizes, f"free-{number}")
        entry["status"]["phase"] = "Available" if draw.chance(0.85) else "Released"
        if unbound and draw.chance(0.2):
            meta = unbound.pop(draw.randrange(len(unbound)))["metadata"]
            uid = draw.choice((meta["uid"], "", "another"))
            reference = {"name": meta["name"], "namespace": meta["namespace"]}
            entry["spec"]["claimRef"] = {**reference, **({"uid": uid} if uid else {})}
        created.append(entry)
    return created


def volume(draw: pieces.Draw, sizes: Sizes, name: str) -> Raw:
    """A PersistentVolume."""
    spec: Raw = {
        "capacity": {"storage": sizes.one()},
        "accessModes": draw.sample(_MODES, draw.randint(1, 3)),
    }
    if draw.chance(0.9):
        spec["storageClassName"] = draw.choice(_CLASSES)
    if draw.chance(0.8):
        spec["csi"] = {"driver": draw.choice(_DRIVERS), "volumeHandle": name}
    if draw.chance(0.1):
        spec["volumeMode"] = "Block"
    if draw.chance(0.1):
        spec["volumeAttributesClassName"] = "gold"
    if draw.chance(0.4):
        keys, values = (pieces.ZONE, pieces.HOST), ("east", "west", "n0", "n1")
        terms = [
            {"matchExpressions": [pieces.expression(draw, keys, values)]}
            for _ in range(draw.randint(1, 2))
        ]
        if draw.chance(0.1):
            field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
            terms.append({"matchFields": [field]})
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    labels = {"kind": "fast"} if draw.chance(0.3) else {}
    if draw.chance(0.3):
        zones = draw.choice(("east", "west", "east__west", " east ", "east__"))
        labels[draw.choice((pieces.ZONE, _OLD_ZONE, pieces.REGION))] = zones
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": spec,
        "status": {"phase": "Bound"},
    }


def classes(draw: pieces.Draw) -> list[Raw]:
    """StorageClasses; now and then none."""
    if draw.chance(0.03):
        return []
    makers = {"wait": "a.csi", "now": "b.csi", "hand": "kubernetes.io/no-provisioner"}
    created = []
    for name, provisioner in makers.items():
        mode = "Immediate" if name == "now" else "WaitForFirstConsumer"
        entry: Raw = {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
        }
        if draw.chance(0.3):
            values = draw.some(("east", "west", "north"), 2) or ["east"]
            expression = {"key": pieces.ZONE, "values": values}
            entry["allowedTopologies"] = [{"matchLabelExpressions": [expression]}]
        created.append(entry)
    return created


def drivers(draw: pieces.Draw) -> list[Raw]:
    """CSIDrivers."""
    return [
        {
            "metadata": {"name": name},
            "spec": {
                "storageCapacity": draw.chance(0.4),
                "preventPodSchedulingIfMissing": draw.chance(0.3),
            },
        }
        for name in _DRIVERS
        if draw.chance(0.7)
    ]


def csi_nodes(draw: pieces.Draw, nodes: Sequence[str]) -> list[Raw]:
    """Return what drivers say of nodes; of some nothing."""
    created = []
    for name in nodes:
        entries = [_csi_driver(draw, name, driver) for driver in _DRIVERS if draw.chance(0.7)]
        if draw.chance(0.8):
            created.append({"metadata": {"name": name}, "spec": {"drivers": entries}})
    return created


def _csi_driver(draw: pieces.Draw, node: str, driver: str) -> Raw:
    """A v1.CSINodeDriver; some say how many volumes they attach."""
    entry: Raw = {"name": driver, "nodeID": node, "topologyKeys": None}
    if draw.chance(0.7):
        entry["allocatable"] = {"count": draw.randint(0, 3)}
    return entry


def capacities(draw: pieces.Draw) -> list[Raw]:
    """CSIStorageCapacities."""
    created = []
    for number in range(draw.randint(0, 3)):
        entry: Raw = {
            "metadata": {"name": f"k{number}", "namespace": "red"},
            "storageClassName": draw.choice(_CLASSES),
        }
        if draw.chance(0.9):
            topologies: tuple[Raw, ...] = (
                {},
                {"matchLabels": {pieces.ZONE: "east"}},
                {"matchLabels": {pieces.HOST: "n0"}},
            )
            entry["nodeTopology"] = draw.choice(topologies)
        if draw.chance(0.8):
            entry["capacity"] = draw.choice(("10Mi", "2000Mi", "1Ti"))
        if draw.chance(0.3):
            entry["maximumVolumeSize"] = draw.choice(("10Mi", "1000Mi"))
        created.append(entry)
    return created


def attachments(draw: pieces.Draw, results: Sequence[Raw], nodes: Sequence[str]) -> list[Raw]:
    """VolumeAttachments of volumes that are there, mostly."""
    created = []
    for number in range(draw.randint(0, 4)):
        names = [result["metadata"]["name"] for result in results] or ["gone"]
        spec = {
            "attacher": draw.choice(_DRIVERS),
            "nodeName": draw.choice(nodes),
            "source": {"persistentVolumeName": draw.choice(names)},
        }
        created.append({"metadata": {"name": f"a{number}"}, "spec": spec})
    return created
