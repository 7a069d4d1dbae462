"""Health problems as device taints: on a whole GPU, or around one instance. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from driver import ids
from driver.devices import faces, health, mig, model
from driver.resources.dra import slices
from driver.resources.publish import slice_builder

MAX_HEALTH_TAINTS = slice_builder.MAX_TAINTS - 3
"""Room is left for the taints of the allocator, a cordon and a drain."""
_STRENGTH = {"NoExecute": 0, "NoSchedule": 1, "None": 2}
Ailments = Mapping[ids.GpuUuid, Sequence[health.Ailment]]


def taints(
    gpus: Iterable[model.Gpu], ailments: Ailments
) -> dict[ids.DeviceName, tuple[slices.Taint, ...]]:
    """The taints of every device that something is wrong with, each key and value once.

    A monitor face has none: what watches a sick GPU is needed most then.
    """
    return {
        face.name: mine
        for gpu in gpus
        for face in faces.all_faces(gpu)
        if (mine := face_taints(face, ailments.get(gpu.uuid, ())))
    }


def face_taints(face: faces.Face, ailments: Sequence[health.Ailment]) -> tuple[slices.Taint, ...]:
    """Return the taints of one device, at most MAX_HEALTH_TAINTS: the strongest effects stay."""
    mine = dict.fromkeys(
        slices.Taint(ailment.key, ailment.value, ailment.effect)
        for ailment in ailments
        if applies_to(ailment, face)
    )
    if len(mine) <= MAX_HEALTH_TAINTS:
        return tuple(mine)
    strongest = sorted(mine, key=lambda taint: _STRENGTH[taint.effect])
    return tuple(strongest[:MAX_HEALTH_TAINTS])


def applies_to(ailment: health.Ailment, face: faces.Face) -> bool:
    """Return whether a device runs on the sick part: its GPU, or the slices of an instance.

    An instance that is gone does not tell its placement: then it is the whole GPU.
    """
    if isinstance(face, faces.MonitorFace):
        return False
    placement = _place(ailment.instance, face.gpu.mig)
    return (
        placement is None
        or not isinstance(face, faces.MigFace)
        or face.placement.overlaps(placement)
    )


def _place(instance: health.Instance | None, result: mig.Mig | None) -> mig.Placement | None:
    if instance is None or result is None:
        return None
    built = result.instance(instance.gpu_instance)
    return built.placement if built else None
