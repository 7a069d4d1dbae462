"""The kinds of storage.k8s.io that filters read: classes, drivers, capacities and attachments."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver import ids
from driver.resources import fields, quantities
from driver.resources.core import label_selectors

Topology = tuple[tuple[tuple[str, frozenset[str]], ...], ...]
"""Terms of which one must match: by label key the values that do."""


@dataclass(frozen=True, slots=True)
class StorageClass:
    """Provisioning of volumes; `waits_for_consumer`: volumeBindingMode WaitForFirstConsumer."""

    name: str
    provisioner: str
    waits_for_consumer: bool
    topology: Topology = ()

    def reaches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether volumes can be made for a node of these labels (allowedTopologies)."""
        if not self.topology:
            return True
        return any(
            term and all(labels.get(key) in values for key, values in term)
            for term in self.topology
        )


@dataclass(frozen=True, slots=True)
class CSINode:
    """The storage drivers of a node, and how many volumes each attaches at most."""

    name: ids.NodeName
    drivers: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CSIDriver:
    """The demands of a storage driver on scheduling."""

    name: str
    tracks_capacity: bool = False
    must_exist: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest volume of a class that can be made for some nodes; `max_size` is in bytes."""

    key: ids.Key
    storage_class: str
    nodes: label_selectors.LabelSelector | None
    max_size: int | None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A volume attached to a node, or about to be; `volume` is that of a PersistentVolume."""

    name: str
    driver: str
    node: ids.NodeName
    volume: str


def parse_class(obj: fields.Raw) -> StorageClass:
    """Read a StorageClass."""
    listed = fields.objects(obj, "allowedTopologies")
    return StorageClass(
        name=_name(obj),
        provisioner=fields.text(obj, "provisioner"),
        waits_for_consumer=obj.get("volumeBindingMode") == "WaitForFirstConsumer",
        topology=tuple(_topology(term, path) for path, term in listed),
    )


def _topology(term: fields.Raw, prefix: str) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple(
        (fields.text(entry, "key", path), frozenset(fields.texts(entry, "values", path)))
        for path, entry in fields.objects(term, "matchLabelExpressions", prefix)
    )


def parse_node(obj: fields.Raw) -> CSINode:
    """Read a CSINode."""
    limits = {}
    drivers = []
    for path, driver in fields.objects(fields.mapping(obj, "spec"), "drivers", "spec"):
        name = fields.text(driver, "name", path)
        drivers.append(name)
        allocatable = fields.mapping(driver, "allocatable", path)
        if allocatable.get("count") is not None:
            limits[name] = fields.integer(allocatable, "count", f"{path}.allocatable")
    return CSINode(ids.NodeName(_name(obj)), frozenset(drivers), limits)


def parse_driver(obj: fields.Raw) -> CSIDriver:
    """Read a CSIDriver."""
    spec = fields.mapping(obj, "spec")
    return CSIDriver(
        _name(obj),
        fields.flag(spec, "storageCapacity", "spec"),
        fields.flag(spec, "preventPodSchedulingIfMissing", "spec"),
    )


def parse_capacity(obj: fields.Raw) -> Capacity:
    """Read a CSIStorageCapacity."""
    namespace = fields.text(fields.mapping(obj, "metadata"), "namespace", "metadata")
    amount = obj.get("maximumVolumeSize", obj.get("capacity"))
    return Capacity(
        key=ids.Key(f"{namespace}/{_name(obj)}"),
        storage_class=fields.text(obj, "storageClassName"),
        nodes=label_selectors.parse(obj, "nodeTopology", ""),
        max_size=None if amount is None else quantities.parse(amount, "capacity").units,
    )


def parse_attachment(obj: fields.Raw) -> Attachment:
    """Read a VolumeAttachment."""
    spec = fields.mapping(obj, "spec")
    return Attachment(
        _name(obj),
        fields.text(spec, "attacher", "spec"),
        ids.NodeName(fields.text(spec, "nodeName", "spec")),
        fields.text(fields.mapping(spec, "source", "spec"), "persistentVolumeName", "spec.source"),
    )


def _name(obj: fields.Raw) -> str:
    return fields.required_text(fields.mapping(obj, "metadata"), "name", "metadata")
