"""What each device of a prepared claim takes of its GPU, by the records. Pure."""

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
"""How a claim may have a GPU."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """A device of a claim, and what of its GPU is the claim's.

    `memory` in bytes and `compute`, a part of the GPU's, are what it was given, and None where
    nothing tells. `limit` is the memory that its processes cannot exceed, None where nothing holds
    them to any. `part` is the larger one of the two as a part of the GPU.
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
    """Of every claim whose devices are ready; what administrators look on with takes nothing."""
    for record in records:
        if record.state is checkpoint.State.COMPLETED:
            made = tuple(parts.planned_instances(record.steps, record.facts))
            mine = (one for one in record.devices if not one.admin_access)
            yield from (_device_use(record.claim, one, gpus.get(one.gpu), made) for one in mine)


def _device_use(
    claim: ports.ClaimRef,
    device: steps.PlannedDevice,
    gpu: model.Gpu | None,
    made: Iterable[mig.InstanceRef],
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
        mode, place = MIG, device.edits.instance
        face = _face(gpu, place)
        profile = face.profile.name if face else ""
        memory = limit = face.profile.memory_bytes if face else None
        compute = attributes.compute_percent(face) / _PERCENT if face else None
        uuid = place.uuid or _instance_uuid(place, made)
    else:
        mode = WHOLE
    part = _gpu_part(memory, total, compute)
    return DeviceUse(
        claim, key, device.pool, device.gpu, mode, memory, compute, limit, part, profile, uuid
    )


def _face(gpu: model.Gpu | None, place: mig.InstanceRef) -> faces.MigFace | None:
    profile = gpu.mig.profile(place.profile_id) if gpu and gpu.mig else None
    return faces.MigFace(gpu, profile, place.placement) if gpu and profile else None


def _instance_uuid(place: mig.InstanceRef, made: Iterable[mig.InstanceRef]) -> str:
    here = (one.uuid for one in made if (one.gpu, one.placement) == (place.gpu, place.placement))
    return next((one for one in here if one), "")


def _gpu_part(memory: int | None, total: int | None, compute: float | None) -> float | None:
    of_memory = memory / total if memory is not None and total else None
    return max((one for one in (of_memory, compute) if one is not None), default=None)
