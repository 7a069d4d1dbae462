"""NodeVolumeLimits: a CSI driver attaches a limited number of volumes to a node (CSINode). Pure.

In-tree volumes that a node has migrated to CSI are not counted.
"""

from collections.abc import Collection, Iterable, Iterator

from driver import ids
from driver.resources.core import nodes, pods
from driver.scheduling.snapshot import storage_index

_Volume = tuple[str, str]
"""A driver and its handle of a volume."""
_IN_TREE = frozenset(
    f"kubernetes.io/{name}"
    for name in (
        *("aws-ebs", "gce-pd", "cinder", "azure-disk", "azure-file", "vsphere-volume"),
        "portworx-volume",
    )
)
"""Provisioners of in-tree plugins that have a successor."""


def rejection(
    held: storage_index.StorageIndex,
    node: nodes.Node,
    pod: pods.Pod,
    placed: Collection[pods.Pod],
    nominated: Collection[pods.Pod] = (),
) -> str:
    """Return why the pod's volumes cannot be attached to the node, in words; "" for none.

    Both with and without the pods nominated to it: one may have attached a volume of this pod's.
    """
    alone = _rejection_beside(held, node, pod, placed)
    return alone or (_rejection_beside(held, node, pod, [*placed, *nominated]) if nominated else "")


def _rejection_beside(
    held: storage_index.StorageIndex, node: nodes.Node, pod: pods.Pod, others: Collection[pods.Pod]
) -> str:
    lacking = _missing_claim(held, pod)
    if lacking:
        return lacking
    needed = {*_attached_volumes(held, pod)}
    if not needed:
        return ""
    entry = held.csi_nodes.get(node.name)
    absent = _absent_driver(held, node, {driver for driver, _ in needed})
    if absent:
        return f"storage driver {absent} is not on the node"
    if entry is None or not entry.limits:
        return ""
    present = {volume for other in others for volume in _attached_volumes(held, other)}
    attached = present | {*_node_attachments(held, node.name)}
    for driver, most in sorted(entry.limits.items()):
        more, had = _count_driver(needed - present, driver), _count_driver(attached, driver)
        if more and more + had > most:
            return f"{had} volumes of {driver}, at most {most}"
    return ""


def _missing_claim(held: storage_index.StorageIndex, pod: pods.Pod) -> str:
    for name in pod.volume_claims:
        claim = held.claims.get(ids.Key(f"{pod.namespace}/{name}"))
        if claim is None:
            return f"volume claim {name} {held.missing_claim_message()}"
        if name in pod.ephemeral_claims and claim.owner != pod.uid:
            return f"volume claim {name} is another pod's"
    return ""


def _absent_driver(
    held: storage_index.StorageIndex, node: nodes.Node, drivers: Iterable[str]
) -> str:
    """Return a driver that must be on the node and is not; "" for none."""
    entry = held.csi_nodes.get(node.name)
    present = entry.drivers if entry is not None else frozenset()
    for name in sorted(drivers):
        driver = held.csi_drivers.get(name)
        if driver is not None and driver.must_exist and name not in present:
            return name
    return ""


def _attached_volumes(held: storage_index.StorageIndex, pod: pods.Pod) -> Iterator[_Volume]:
    """Yield the attached volumes of a pod; a volume to be provisioned is named by its claim."""
    for name in pod.volume_claims:
        claim = held.claims.get(ids.Key(f"{pod.namespace}/{name}"))
        if claim is None:
            continue
        volume = held.persistent_volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            if volume.driver and volume.handle:
                yield volume.driver, volume.handle
            continue
        entry = held.storage_classes.get(claim.storage_class) if claim.storage_class else None
        if entry is not None and entry.provisioner and entry.provisioner not in _IN_TREE:
            yield entry.provisioner, f"{pod.namespace}/{name}"


def _node_attachments(held: storage_index.StorageIndex, name: ids.NodeName) -> Iterator[_Volume]:
    for attachment in held.attachments(name):
        volume = held.persistent_volumes.get(attachment.volume)
        if volume is not None and volume.driver:
            yield attachment.driver, volume.handle


def _count_driver(mounted: Iterable[_Volume], driver: str) -> int:
    return sum(name_of == driver for name_of, _ in mounted)
