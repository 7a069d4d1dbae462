"""Strips objects to what scheduling needs, so that a cluster can be simulated elsewhere. Pure.

An allowlist: env, args, images and annotations of pods are removed, and so are fields that the API
adds later.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from driver import names

Raw = Mapping[str, Any]
_Keep = Mapping[str, Any]
"""What is kept of an object: by field True for all of it, else what is kept of it, or a function.

Of a list, of each element.
"""


def _some(*keys: str) -> _Keep:
    return dict.fromkeys(keys, True)


def _conditions(*types: str) -> Callable[[object], object]:
    def keep(obj: object) -> object:
        desired = _some("type", "status", "reason", "message")
        fields_kept = obj if isinstance(obj, Sequence) else ()
        return [_kept(item, desired) for item in fields_kept if _says(item, "type") in types]

    return keep


def _owner(obj: object) -> object:
    """The controller alone: what belongs together, and of which kind."""
    fields_kept = obj if isinstance(obj, Sequence) else ()
    desired = _some("kind", "name", "uid", "controller")
    return [_kept(item, desired) for item in fields_kept if _says(item, "controller")]


def _volumes(obj: object) -> object:
    """Return the volumes that may be bound to nodes."""
    desired = {
        "name": True,
        "persistentVolumeClaim": _some("claimName"),
        "ephemeral": {},
        "gcePersistentDisk": _some("pdName", "readOnly"),
        "awsElasticBlockStore": _some("volumeID", "readOnly"),
        "iscsi": _some("iqn", "readOnly"),
        "rbd": _some("image", "pool", "monitors", "readOnly"),
    }
    fields_kept = obj if isinstance(obj, Sequence) else ()
    return [
        _kept(item, desired)
        for item in fields_kept
        if any(_says(item, source) is not None for source in desired if source != "name")
    ]


def _says(obj: object, key: str) -> object:
    return obj.get(key) if isinstance(obj, Mapping) else None


_META = _some("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
_CONTAINER: _Keep = {
    "name": True,
    "restartPolicy": True,
    "resources": _some("requests", "claims"),
    "ports": _some("hostPort", "hostIP", "protocol", "containerPort"),
}
_SAID = (
    *(names.DEFRAG, names.MAX_RUN_TIME, names.ON_FAULT, names.PREEMPTIBLE),
    *(names.GANG_SIZE, names.GANG_TIMEOUT, names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED),
)
_BINDING = (
    *("pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node"),
    "volume.beta.kubernetes.io/storage-class",
)
_POD: _Keep = {
    "metadata": {
        **_META,
        "creationTimestamp": True,
        "ownerReferences": _owner,
        "annotations": _some(*_SAID),
        "labels": True,
    },
    "spec": {
        **_some("nodeName", "nodeSelector", "tolerations", "schedulingGates", "schedulerName"),
        **_some("priority", "preemptionPolicy", "resourceClaims", "overhead"),
        **_some("activeDeadlineSeconds", "schedulingGroup"),
        **_some("affinity", "topologySpreadConstraints"),
        "resources": _some("requests"),
        "containers": _CONTAINER,
        "initContainers": _CONTAINER,
        "volumes": _volumes,
    },
    "status": {
        **_some("phase", "nominatedNodeName", "resourceClaimStatuses", "startTime"),
        **_some("resources", "allocatedResources"),
        "containerStatuses": _some("name", "resources", "allocatedResources"),
        "initContainerStatuses": _some("name", "resources", "allocatedResources"),
        "conditions": _conditions("PodScheduled", "PodResizePending"),
    },
}
_KINDS: Mapping[str, _Keep] = {
    "Node": {
        "metadata": {**_META, "labels": True},
        "spec": _some("taints", "unschedulable"),
        "status": {"allocatable": True, "conditions": _conditions("Ready", names.NODE_CONDITION)},
    },
    "Pod": _POD,
    "ResourceSlice": {"metadata": _META, "spec": True},
    "DeviceClass": {
        "metadata": {**_META, "annotations": _some(names.POLICIES_ANNOTATION)},
        "spec": True,
    },
    "DeviceTaintRule": {"metadata": _META, "spec": True},
    "ResourceClaimTemplate": {"metadata": _META, "spec": {"spec": True}},
    "ResourceClaim": {
        "metadata": {**_META, "annotations": _some(names.POD_CLAIM_ANNOTATION)},
        "spec": True,
        "status": _some("allocation", "reservedFor"),
    },
    "PersistentVolumeClaim": {
        "metadata": {**_META, "annotations": _some(*_BINDING), "ownerReferences": _owner},
        "spec": {
            **_some("volumeName", "storageClassName", "accessModes", "selector", "volumeMode"),
            **_some("volumeAttributesClassName"),
            "resources": _some("requests"),
        },
        "status": _some("phase"),
    },
    "PersistentVolume": {
        "metadata": {**_META, "labels": True, "annotations": _some(*_BINDING)},
        "spec": {
            **_some("nodeAffinity", "storageClassName", "accessModes", "capacity", "volumeMode"),
            **_some("volumeAttributesClassName"),
            "claimRef": _some("namespace", "name", "uid"),
            "csi": _some("driver", "volumeHandle"),
        },
        "status": _some("phase"),
    },
    "Namespace": {"metadata": {**_META, "labels": True}},
    "StorageClass": {
        "metadata": _META,
        **_some("provisioner", "volumeBindingMode", "allowedTopologies"),
    },
    "CSINode": {"metadata": _META, "spec": {"drivers": _some("name", "allocatable")}},
    "CSIDriver": {
        "metadata": _META,
        "spec": _some("storageCapacity", "preventPodSchedulingIfMissing"),
    },
    "CSIStorageCapacity": {
        "metadata": _META,
        **_some("storageClassName", "nodeTopology", "capacity", "maximumVolumeSize"),
    },
    "VolumeAttachment": {
        "metadata": _META,
        "spec": {
            **_some("attacher", "nodeName"),
            "source": _some("persistentVolumeName"),
        },
    },
    "PriorityClass": {"metadata": _META, **_some("value", "globalDefault")},
}


def strip(obj: Raw) -> dict[str, Any] | None:
    """Return what scheduling needs of an object; None if nothing."""
    keep = _KINDS.get(str(obj.get("kind")))
    if keep is None:
        return None
    return dict(_kept(obj, {"apiVersion": True, "kind": True, **keep}))


def _kept(obj: Any, keep: Any) -> Any:  # noqa: ANN401 - any part of an object
    if keep is True:
        return obj
    if callable(keep):
        return keep(obj)
    if isinstance(obj, list | tuple):
        return [_kept(item, keep) for item in obj]
    if not isinstance(obj, Mapping):
        return obj
    stripped = {key: _kept(obj[key], how) for key, how in keep.items() if key in obj}
    return {key: value for key, value in stripped.items() if value is not None and value != []}
