"""Volumes, their claims, classes, drivers and attachments, maintained incrementally. Pure.

Only pods with volumes depend on them; `revision` changes with every object.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from driver import ids
from driver.resources.core import storage, volumes

K = TypeVar("K")
V = TypeVar("V")


class StorageIndex:
    """One mapping per kind."""

    def __init__(self) -> None:
        self._revision = 0
        self._claims: dict[ids.Key, volumes.VolumeClaim] = {}
        self._volumes: dict[str, volumes.Volume] = {}
        self._by_class: dict[str, dict[str, volumes.Volume]] = {}
        self._classes: dict[str, storage.StorageClass] = {}
        self._nodes: dict[str, storage.CSINode] = {}
        self._drivers: dict[str, storage.CSIDriver] = {}
        self._capacities: dict[ids.Key, storage.Capacity] = {}
        self._attachments: dict[str, storage.Attachment] = {}
        self._attached: dict[ids.NodeName, dict[str, storage.Attachment]] = {}

    @property
    def revision(self) -> int:
        """Revision number; changes with every object."""
        return self._revision

    @property
    def claims(self) -> Mapping[ids.Key, volumes.VolumeClaim]:
        """PersistentVolumeClaims."""
        return MappingProxyType(self._claims)

    @property
    def persistent_volumes(self) -> Mapping[str, volumes.Volume]:
        """PersistentVolumes."""
        return MappingProxyType(self._volumes)

    @property
    def storage_classes(self) -> Mapping[str, storage.StorageClass]:
        """StorageClasses."""
        return MappingProxyType(self._classes)

    @property
    def csi_nodes(self) -> Mapping[str, storage.CSINode]:
        """CSINodes, by the names of nodes."""
        return MappingProxyType(self._nodes)

    @property
    def csi_drivers(self) -> Mapping[str, storage.CSIDriver]:
        """CSIDrivers."""
        return MappingProxyType(self._drivers)

    @property
    def capacities(self) -> Iterable[storage.Capacity]:
        """CSIStorageCapacities."""
        return self._capacities.values()

    def missing_claim_message(self) -> str:
        """Return the words for a missing claim: it does not exist, or may not be listed."""
        unseen = "is not seen: no volume claim is, perhaps volume claims may not be listed"
        return "is not there" if self._claims else unseen

    def missing_volume_message(self) -> str:
        """Return the words for a missing volume: it does not exist, or may not be listed."""
        unseen = "is not seen: no volume is, perhaps volumes may not be listed"
        return "is not there" if self._volumes else unseen

    def class_volumes(self, name: str) -> Iterable[volumes.Volume]:
        """Return the volumes of a storage class, by name."""
        return [volume for _, volume in sorted(self._by_class.get(name, {}).items())]

    def attachments(self, node: ids.NodeName) -> Iterable[storage.Attachment]:
        """Return the attachments of a node."""
        return self._attached.get(node, {}).values()

    def set_claim(self, key: ids.Key, claim: volumes.VolumeClaim | None) -> bool:
        """Set or delete a PersistentVolumeClaim; return whether it changed."""
        return self._set(self._claims, key, claim)

    def set_volume(self, name: str, volume: volumes.Volume | None) -> bool:
        """Set or delete a PersistentVolume; return whether it changed."""
        previous = self._volumes.get(name)
        if not self._set(self._volumes, name, volume):
            return False
        if previous is not None:
            del self._by_class[previous.storage_class][name]
        if volume is not None:
            self._by_class.setdefault(volume.storage_class, {})[name] = volume
        return True

    def set_class(self, name: str, entry: storage.StorageClass | None) -> bool:
        """Set or delete a StorageClass; return whether it changed."""
        return self._set(self._classes, name, entry)

    def set_node(self, name: str, node: storage.CSINode | None) -> bool:
        """Set or delete a CSINode; return whether it changed."""
        return self._set(self._nodes, name, node)

    def set_driver(self, name: str, driver: storage.CSIDriver | None) -> bool:
        """Set or delete a CSIDriver; return whether it changed."""
        return self._set(self._drivers, name, driver)

    def set_capacity(self, key: ids.Key, capacity: storage.Capacity | None) -> bool:
        """Set or delete a CSIStorageCapacity; return whether it changed."""
        return self._set(self._capacities, key, capacity)

    def set_attachment(self, name: str, attachment: storage.Attachment | None) -> bool:
        """Set or delete a VolumeAttachment; return whether it changed."""
        previous = self._attachments.get(name)
        if not self._set(self._attachments, name, attachment):
            return False
        if previous is not None:
            del self._attached[previous.node][name]
        if attachment is not None:
            self._attached.setdefault(attachment.node, {})[name] = attachment
        return True

    def _set(self, objects: dict[K, V], key: K, value: V | None) -> bool:
        if objects.get(key) == value:
            return False
        self._revision += 1
        if value is None:
            del objects[key]
        else:
            objects[key] = value
        return True
