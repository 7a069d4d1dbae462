"""Health of every published device, for the kubelet. Pure."""

from driver.devices import faces, health, model
from driver.kubeletplugin.rpc.health_stream import DeviceHealth
from driver.resources.publish import health_taints, slice_builder

_WITHDRAWN = "its GPU is gone, or it is no longer offered; it is kept for the claim that holds it"


def pool_health(
    pool: slice_builder.Pool, gpus: tuple[model.Gpu, ...], ailments: health_taints.Ailments
) -> tuple[DeviceHealth, ...]:
    """Return the health of every device of the pool, in its order."""
    by_name = {face.name: face for gpu in gpus for face in faces.all_faces(gpu)}
    return tuple(
        _face_health(pool.name, by_name[device.name], ailments)
        if device.name in by_name
        else DeviceHealth(pool.name, device.name, healthy=False, message=_WITHDRAWN)
        for device in pool.devices
    )


def _face_health(pool: str, face: faces.Face, ailments: health_taints.Ailments) -> DeviceHealth:
    relevant = tuple(
        ailment
        for ailment in ailments.get(face.gpu.uuid, ())
        if health_taints.applies_to(ailment, face)
    )
    text = "; ".join(ailment.message for ailment in relevant)
    return DeviceHealth(pool, face.name, healthy=health.is_healthy(relevant), message=text)
