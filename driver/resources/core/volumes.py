"""PersistentVolumes and their claims, as far as they say on which nodes a pod can be (D5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver import ids
from driver.resources import fields, quantities
from driver.resources.core import label_selectors, node_selectors

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BOUND = "pv.kubernetes.io/bind-completed"
_SELECTED = "volume.kubernetes.io/selected-node"
ONE_POD = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim. `completed`: the binding to `volume` has come to its end.

    `selected` is the node for which its volume is being made, `size` is in nano-bytes, `owner` the
    UID of its controller. Without a name it is one that tests made.
    """

    volume: str = ""
    completed: bool = True
    namespace: str = ""
    name: str = ""
    uid: str = ""
    storage_class: str = ""
    selected: ids.NodeName | None = None
    size: int | None = None
    modes: frozenset[str] = frozenset()
    selector: label_selectors.LabelSelector | None = None
    block: bool = False
    attributes_class: str = ""
    lost: bool = False
    deleting: bool = False
    owner: str = ""

    @property
    def bound(self) -> bool:
        """Tell whether it has its volume."""
        return bool(self.volume) and self.completed


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """The claim that a volume is for; an empty UID stands for any of that name."""

    namespace: str
    name: str
    uid: str = ""

    def names(self, claim: VolumeClaim) -> bool:
        """Tell whether it is this claim."""
        if (self.namespace, self.name) != (claim.namespace, claim.name):
            return False
        return self.uid in ("", claim.uid)


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume; without a selector every node reaches it. `size` is in nano-bytes.

    `driver` and `handle` are those of CSI, "" for any other kind of volume.
    """

    selector: node_selectors.NodeSelector | None = None
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    storage_class: str = ""
    size: int = 0
    modes: frozenset[str] = frozenset()
    available: bool = False
    block: bool = False
    attributes_class: str = ""
    claim: ClaimRef | None = None
    deleting: bool = False
    driver: str = ""
    handle: str = ""


def parse_claim(obj: fields.Raw) -> VolumeClaim:
    """Read a PersistentVolumeClaim."""
    meta, spec = fields.mapping(obj, "metadata"), fields.mapping(obj, "spec")
    notes = fields.mapping(meta, "annotations", "metadata")
    selected = fields.text(notes, _SELECTED, "metadata.annotations")
    return VolumeClaim(
        volume=fields.text(spec, "volumeName", "spec"),
        completed=_BOUND in notes,
        namespace=fields.text(meta, "namespace", "metadata"),
        name=fields.text(meta, "name", "metadata"),
        uid=fields.text(meta, "uid", "metadata"),
        storage_class=_class(notes, spec),
        selected=ids.NodeName(selected) if _SELECTED in notes else None,
        size=_size(fields.mapping(spec, "resources", "spec"), "requests", "spec.resources"),
        modes=frozenset(fields.texts(spec, "accessModes", "spec")),
        selector=label_selectors.parse(spec, "selector", "spec"),
        block=spec.get("volumeMode") == "Block",
        attributes_class=fields.text(spec, "volumeAttributesClassName", "spec"),
        lost=fields.mapping(obj, "status").get("phase") == "Lost",
        deleting=bool(meta.get("deletionTimestamp")),
        owner=_owner(meta),
    )


def parse_volume(obj: fields.Raw) -> Volume:
    """Read a PersistentVolume."""
    path = "spec.nodeAffinity"
    meta, spec = fields.mapping(obj, "metadata"), fields.mapping(obj, "spec")
    required = fields.mapping(fields.mapping(spec, "nodeAffinity", "spec"), "required", path)
    csi = fields.mapping(spec, "csi", "spec")
    return Volume(
        selector=node_selectors.parse(required, f"{path}.required") if required else None,
        name=fields.text(meta, "name", "metadata"),
        labels=fields.text_map(meta, "labels", "metadata"),
        storage_class=_class(fields.mapping(meta, "annotations", "metadata"), spec),
        size=_size(spec, "capacity", "spec") or 0,
        modes=frozenset(fields.texts(spec, "accessModes", "spec")),
        available=fields.mapping(obj, "status").get("phase") == "Available",
        block=spec.get("volumeMode") == "Block",
        attributes_class=fields.text(spec, "volumeAttributesClassName", "spec"),
        claim=_claim_ref(spec),
        deleting=bool(meta.get("deletionTimestamp")),
        driver=fields.text(csi, "driver", "spec.csi"),
        handle=fields.text(csi, "volumeHandle", "spec.csi"),
    )


def _class(notes: fields.Raw, spec: fields.Raw) -> str:
    if _BETA_CLASS in notes:
        return fields.text(notes, _BETA_CLASS, "metadata.annotations")
    return fields.text(spec, "storageClassName", "spec")


def _size(obj: fields.Raw, key: str, prefix: str) -> int | None:
    value = fields.mapping(obj, key, prefix).get("storage")
    return None if value is None else quantities.parse(value, f"{prefix}.{key}.storage").nanos


def _owner(meta: fields.Raw) -> str:
    for path, owner in fields.objects(meta, "ownerReferences", "metadata"):
        if fields.flag(owner, "controller", path):
            return fields.text(owner, "uid", path)
    return ""


def _claim_ref(spec: fields.Raw) -> ClaimRef | None:
    if spec.get("claimRef") is None:
        return None
    reference, path = fields.mapping(spec, "claimRef", "spec"), "spec.claimRef"
    return ClaimRef(*(fields.text(reference, key, path) for key in ("namespace", "name", "uid")))
