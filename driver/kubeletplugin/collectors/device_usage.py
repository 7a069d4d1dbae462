"""Part of its GPU that each device of a prepared claim takes, by the records. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import ids
from driver.devices import attributes, faces, mig, model
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import mig as parts
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint

_PERCENT = faces.FULL_COMPUTE_PERCENT
WHOLE, MIG, MPS, TIME_SLICING = (
    kind.value
    for kind in (faces.Kind.WHOLE, faces.Kind.MIG, faces.Kind.MPS, faces.Kind.TIME_SLICING)
)
MODES = (WHOLE, MIG, MPS, TIME_SLICING)
"""Modes in which a claim may have a GPU."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """A device of a claim, and the claim's part of its GPU.

    `memory` in bytes and `compute`, a fraction of the GPU's, are the allocated amounts; None if
    unknown. `limit` is the enforced memory limit in bytes, None if nothing enforces one. `part` is
    the larger of memory and compute as a fraction of the GPU.
    """

    claim: ports.ClaimRef
    key: ports.DeviceKey
    pool: str
    gpu: ids.GpuUuid
    mode: str
    memory: int | None = None
    compute: float | None = None
    limit: int | None = None
    part: float | None = None
    profile: str = ""
    mig_uuid: str = ""


def device_uses(
    records: Iterable[checkpoint.Record], gpus: Mapping[ids.GpuUuid, model.Gpu]
) -> Iterator[DeviceUse]:
    """Yield the devices of every completed record; admin access takes nothing."""
    for record in records:
        if record.state is checkpoint.State.COMPLETED:
            instances = tuple(parts.planned_instances(record.steps, record.facts))
            devices = (device for device in record.devices if not device.admin_access)
            yield from (
                _device_use(record.claim, device, gpus.get(device.gpu), instances)
                for device in devices
            )


def _device_use(
    claim: ports.ClaimRef,
    device: steps.PlannedDevice,
    gpu: model.Gpu | None,
    instances: Iterable[mig.InstanceRef],
) -> DeviceUse:
    key = ports.DeviceKey(device.device, device.share_id)
    total = gpu.memory_bytes if gpu else None
    profile = uuid = ""
    memory: int | None = total
    compute: float | None = 1.0
    limit = total
    if device.terms is not None:
        mode = device.terms.sharing
        memory, compute = device.terms.memory_bytes, device.terms.compute_percent / _PERCENT
        limit = memory if mode == MPS else None
    elif device.edits.instance is not None:
        mode, ref = MIG, device.edits.instance
        face = _face(gpu, ref)
        profile = face.profile.name if face else ""
        memory = limit = face.profile.memory_bytes if face else None
        compute = attributes.compute_percent(face) / _PERCENT if face else None
        uuid = ref.uuid or _instance_uuid(ref, instances)
    else:
        mode = WHOLE
    part = _gpu_part(memory, total, compute)
    return DeviceUse(
        claim, key, device.pool, device.gpu, mode, memory, compute, limit, part, profile, uuid
    )


def _face(gpu: model.Gpu | None, ref: mig.InstanceRef) -> faces.MigFace | None:
    profile = gpu.mig.profile(ref.profile_id) if gpu and gpu.mig else None
    return faces.MigFace(gpu, profile, ref.placement) if gpu and profile else None


def _instance_uuid(ref: mig.InstanceRef, instances: Iterable[mig.InstanceRef]) -> str:
    uuids = (
        item.uuid for item in instances if (item.gpu, item.placement) == (ref.gpu, ref.placement)
    )
    return next((item for item in uuids if item), "")


def _gpu_part(memory: int | None, total: int | None, compute: float | None) -> float | None:
    memory_part = memory / total if memory is not None and total else None
    return max((part for part in (memory_part, compute) if part is not None), default=None)
