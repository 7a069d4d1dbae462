"""Deviations between our filters and kube-scheduler's, by name, each with a reason."""

from tests.oracle.filters import drawing

REASONS = {
    "no-storage-classes": (
        "Where no StorageClass can be seen at all, ours says nothing of claims that are not bound: "
        "the right to list classes may be missing, and then every such pod would wait for ever."
    ),
    "nominated-claims": (
        "For a pod with an in-tree disk, VolumeRestrictions counts a nominated pod that names a "
        "ReadWriteOncePod claim of the same name, in whichever namespace; for a pod without a disk "
        "it does not. Ours counts placed pods of the namespace."
    ),
}
OLDER = {
    "missing-driver-1.36": (
        "preventPodSchedulingIfMissing of a CSIDriver keeps pods from nodes without the driver "
        "from 1.37 on; in 1.36 its feature gate is off. Ours refuses such a node under both: a "
        "volume cannot be attached there."
    ),
}
"""Only with the feature gates of an older version."""
NOT_DRAWN = {
    "in-tree-migration": (
        "In-tree volumes are not translated to CSI: those that a CSINode's annotation says are "
        "migrated are neither counted by NodeVolumeLimits nor given the driver's topology."
    ),
    "extended-resources": (
        "Resources of a DeviceClass that names a managed driver (KEP-5004) are looked for on the "
        "node alone: kube-scheduler gets none of the controller's devices."
    ),
    "invalid-label-values": (
        "A node selector with values that no label can have makes kube-scheduler drop the term."
    ),
    "default-constraints": (
        "kube-scheduler spreads the pods of a Service or an owner by constraints of its own "
        "configuration where they name none; those are not known to the controller."
    ),
    "repeated-hostnames": (
        "By the label kubernetes.io/hostname kube-scheduler scores spread by node; ours by the "
        "label's value, which the kubelet makes different on every node."
    ),
    "scores-of-nodes": (
        "NodeResourcesFit, NodeResourcesBalancedAllocation and ImageLocality score what a node "
        "has, not what the pod prefers: placement policies stand in their place."
    ),
    "declared-features": (
        "NodeDeclaredFeatures (1.37): what a pod needs of the kubelet's version is not derived."
    ),
}
"""Known, and never drawn: the API server refuses them, or they need what is not modelled."""
_STORAGE = frozenset({"VolumeBinding", "VolumeZone"})
_DISKS = frozenset({"gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"})


def excuse_older(plugin: str, theirs: str, ours: str) -> str:
    """The name of the deviation from 1.36 that a difference is; "" for none."""
    missing = plugin == "NodeVolumeLimits" and not theirs and ours.startswith("storage driver ")
    return "missing-driver-1.36" if missing and ours.endswith(" is not on the node") else ""


def excuse(drawn: drawing.Cluster, pod: drawing.Raw, plugin: str, theirs: str, ours: str) -> str:
    """The name of the deviation from 1.37 that a difference is; "" for none."""
    if ours:
        return ""
    if plugin in _STORAGE and not drawn.classes:
        return "no-storage-classes"
    mounted = pod["spec"].get("volumes", ())
    nominated = any("nominatedNodeName" in other["status"] for other in drawn.pods)
    on_disk = any(_DISKS & volume.keys() for volume in mounted)
    if "ReadWriteOncePod" in theirs and nominated and on_disk:
        return "nominated-claims"
    return ""
