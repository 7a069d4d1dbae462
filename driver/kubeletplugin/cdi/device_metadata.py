"""Device metadata for containers: one file per request, at the path common to all drivers. Pure.

KEP-5304, as k8s.io/dynamic-resource-allocation has it (api/metadata, kubeletplugin/metadata.go of
v0.37.1): a stream of JSON objects, the same in each version of the API, the newest first; a reader
takes the first version it knows.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from driver import ids, names
from driver.devices import attributes as device_attributes
from driver.devices import faces, model
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint
from driver.resources.dra import attributes as dra_attributes

VERSIONS: Final = ("v1beta1", "v1alpha1")
_GROUP: Final = "metadata.resource.k8s.io"
_FOLDER: Final = "/var/run/kubernetes.io/dra-device-attributes"
_FIRST_GENERATION: Final = 1


def container_path(record: checkpoint.Record, request: str, driver: str) -> str:
    """Return the path of a request's file in containers."""
    kind, claim = (
        ("resourceclaimtemplates", record.pod_claim)
        if record.pod_claim
        else ("resourceclaims", record.claim.name)
    )
    return f"{_FOLDER}/{kind}/{claim}/{request}/{driver}-metadata.json"


def carrier_devices(record: checkpoint.Record) -> Mapping[str, str]:
    """Return each request with the CDI id of its first device, which mounts its file."""
    return {device.request: device.cdi_id for device in reversed(record.devices)}


class Renderer:
    """Renders files of `driver`; what an inventory tells of a device is worked out once."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._described: tuple[model.Inventory, _Devices] = (model.Inventory(), {})

    def render(self, record: checkpoint.Record, request: str, inventory: model.Inventory) -> bytes:
        """Return the file of one request: its devices, as they are now."""
        described_from, described = self._described
        if described_from is not inventory:
            described = {}
            self._described = (inventory, described)
        devices = [item for item in record.devices if item.request == request]
        chosen = devices[0].subrequest
        body = {
            "kind": "DeviceMetadata",
            "metadata": {
                "name": record.claim.name,
                "namespace": record.claim.namespace,
                "uid": record.uid,
                "generation": _FIRST_GENERATION,
            },
            **({"podClaimName": record.pod_claim} if record.pod_claim else {}),
            "requests": [
                {
                    "name": f"{request}/{chosen}" if chosen else request,
                    "devices": [
                        self._render_device(item, inventory, described) for item in devices
                    ],
                }
            ],
        }
        rest = json.dumps(body, sort_keys=True)[1:]
        stream = (f'{{"apiVersion": "{_GROUP}/{version}", {rest}\n' for version in VERSIONS)
        return "".join(stream).encode()

    def _render_device(
        self, device: steps.PlannedDevice, inventory: model.Inventory, devices: "_Devices"
    ) -> dict[str, object]:
        key = (device.gpu, device.device)
        described = devices.get(key)
        if described is None:
            described = devices[key] = _describe(device, inventory)
        granted = described.granted_capacity(device)
        return {
            "driver": self._driver,
            "pool": device.pool,
            "name": device.device,
            "attributes": {
                **described.attributes,
                **{key: dra_attributes.render(value) for key, value in granted.items()},
            },
        }


@dataclass(frozen=True, slots=True)
class _Described:
    """A device's rendered attributes, as in its slice, and its face.

    A face that does not exist now has none.
    """

    face: faces.Face | None
    attributes: Mapping[str, object]

    def granted_capacity(self, device: steps.PlannedDevice) -> Mapping[str, int]:
        """Return the claim's allocated amounts of the device.

        `memory` is in bytes, `compute` in percent of the GPU.
        """
        return {} if self.face is None else _granted_capacity(device, self.face)


_Devices = dict[tuple[ids.GpuUuid, ids.DeviceName], _Described]


def _describe(device: steps.PlannedDevice, inventory: model.Inventory) -> _Described:
    gpu = inventory.by_uuid(device.gpu)
    face = faces.find_face(gpu, device.device) if gpu else None
    if face is None:
        return _Described(None, {})
    if isinstance(face, faces.MigFace):
        face = replace(face, instance=face.existing)  # ours has no face of its own
    order = tuple(known_gpu.pci for known_gpu in inventory.all_gpus)
    published = device_attributes.face_attributes(
        face, device_attributes.peer_mask(face.gpu, order), ""
    )
    attributes = {
        key: dra_attributes.render(value)
        for key, value in published.items()
        if key != names.ATTR_ALLOCATOR
    }
    return _Described(face, attributes)


def _granted_capacity(device: steps.PlannedDevice, face: faces.Face) -> dict[str, int]:
    if device.terms is not None:
        memory: int | None = device.terms.memory_bytes or None
        compute = device.terms.compute_percent
    else:
        memory = face.profile.memory_bytes if isinstance(face, faces.MigFace) else None
        memory = memory or face.gpu.memory_bytes
        compute = device_attributes.compute_percent(face)
    return {names.CAP_COMPUTE: compute, **({names.CAP_MEMORY: memory} if memory else {})}
