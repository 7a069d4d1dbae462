"""The health of every published device, for the kubelet. Pure."""

from driver.devices import faces, health, model
from driver.kubeletplugin.rpc.health_stream import DeviceHealth
from driver.resources.publish import health_taints, slice_builder

_WITHDRAWN = "its GPU is gone, or it is no longer offered; it is kept for the claim that holds it"


def pool_health(
    pool: slice_builder.Pool, gpus: tuple[model.Gpu, ...], found: health_taints.Ailments
) -> tuple[DeviceHealth, ...]:
    """Every device of the pool, in its order."""
    known = {face.name: face for gpu in gpus for face in faces.all_faces(gpu)}
    return tuple(
        _face_health(pool.name, known[device.name], found)
        if device.name in known
        else DeviceHealth(pool.name, device.name, healthy=False, message=_WITHDRAWN)
        for device in pool.devices
    )


def _face_health(pool: str, face: faces.Face, found: health_taints.Ailments) -> DeviceHealth:
    mine = tuple(one for one in found.get(face.gpu.uuid, ()) if health_taints.concerns(one, face))
    text = "; ".join(one.message for one in mine)
    return DeviceHealth(pool, face.name, healthy=health.is_healthy(mine), message=text)
