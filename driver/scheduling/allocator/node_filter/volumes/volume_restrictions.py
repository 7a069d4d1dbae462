"""VolumeRestrictions: disks that a node mounts once, and claims for a single pod. Pure.

Claims with the access mode ReadWriteOncePod are counted over all nodes, so
`exclusive_claim_in_use` is not a node's own result.
"""

from collections.abc import Collection

from driver import ids
from driver.resources.core import pods, volumes
from driver.scheduling.snapshot import placed_pods, storage_index


def rejection(pod: pods.Pod, others: Collection[pods.Pod]) -> str:
    """Return a disk of the pod that another pod of the node has mounted, in words; "" for none."""
    for disk in pod.disks:
        for other in others:
            if any(disk.collides(other_disk) for other_disk in other.disks):
                return f"disk {disk.name} is mounted by {other.key}"
    return ""


def exclusive_claim_in_use(
    held: storage_index.StorageIndex, placed: placed_pods.Population, pod: pods.Pod
) -> str:
    """Return a ReadWriteOncePod claim that a placed pod uses, in words; "" for none."""
    for name in pod.volume_claims:
        if name in pod.ephemeral_claims:
            continue
        claim = held.claims.get(_key(pod, name))
        alone = claim is not None and volumes.ONE_POD in claim.modes
        if alone and placed.volume_claim_users(_key(pod, name)) > 0:
            return f"volume claim {name} is in use, and for one pod alone"
    return ""


def _key(pod: pods.Pod, name: str) -> ids.Key:
    return ids.Key(f"{pod.namespace}/{name}")
