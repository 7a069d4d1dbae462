"""VolumeZone: zones and regions that bound volumes name by labels must be the node's. Pure."""

from driver import ids
from driver.resources.core import nodes, pods, volumes
from driver.scheduling.snapshot import storage_index

_STABLE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS = (*_STABLE_LABELS, *_STABLE_LABELS.values())
_SEPARATOR = "__"


def rejection(held: storage_index.StorageIndex, node: nodes.Node, pod: pods.Pod) -> str:
    """Return why a volume cannot be used on the node, in words; "" for none.

    Claims without a volume are rejected on every node, unless their class waits for a node; generic
    ephemeral volumes are ignored.
    """
    bound = []
    for name in pod.volume_claims:
        if name in pod.ephemeral_claims:
            continue
        claim = held.claims.get(ids.Key(f"{pod.namespace}/{name}"))
        if claim is None:
            return f"volume claim {name} {held.missing_claim_message()}"
        if not claim.volume:
            lacking = _unbound_claim(held, name, claim)
            if lacking:
                return lacking
            continue
        volume = held.persistent_volumes.get(claim.volume)
        if volume is None:
            return f"volume {claim.volume} of claim {name} {held.missing_volume_message()}"
        bound.append((name, volume))
    if not any(label in node.labels for label in _LABELS):
        return ""
    elsewhere = (name for name, volume in bound if not _in_zone(volume, node))
    name = next(elsewhere, "")
    return f"volume of claim {name} is of another zone" if name else ""


def _unbound_claim(held: storage_index.StorageIndex, name: str, claim: volumes.VolumeClaim) -> str:
    if not claim.storage_class:
        return f"volume claim {name} is not bound and has no class"
    maker = held.storage_classes.get(claim.storage_class)
    if maker is None:
        return f"StorageClass {claim.storage_class} is not there" if held.storage_classes else ""
    return "" if maker.waits_for_consumer else f"volume claim {name} is not bound yet"


def _in_zone(volume: volumes.Volume, node: nodes.Node) -> bool:
    for label in _LABELS:
        if label not in volume.labels:
            continue
        zones = [zone.strip() for zone in volume.labels[label].split(_SEPARATOR)]
        if not all(zones):
            continue  # unreadable: ignored
        value = node.labels.get(label, node.labels.get(_STABLE_LABELS.get(label, label)))
        if value is None or value not in zones:
            return False
    return True
