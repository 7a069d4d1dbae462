"""What ails GPUs, as taints of the devices it concerns: of a whole GPU, or around one instance."""

from collections.abc import Iterable, Mapping, Sequence

from driver import ids
from driver.devices import faces, health, mig, model
from driver.resources.dra import slices

Ailments = Mapping[ids.GpuUuid, Sequence[health.Ailment]]


def taints(
    gpus: Iterable[model.Gpu], found: Ailments
) -> dict[ids.DeviceName, tuple[slices.Taint, ...]]:
    """The taints of every device that something is wrong with, each key and value once.

    A monitor face has none: what watches a sick GPU is needed most then.
    """
    return {
        face.name: mine
        for gpu in gpus
        for face in faces.all_faces(gpu)
        if (mine := face_taints(face, found.get(gpu.uuid, ())))
    }


def face_taints(face: faces.Face, found: Sequence[health.Ailment]) -> tuple[slices.Taint, ...]:
    """The taints of one device."""
    mine = (slices.Taint(one.key, one.value, one.effect) for one in found if applies_to(one, face))
    return tuple(dict.fromkeys(mine))


def applies_to(one: health.Ailment, face: faces.Face) -> bool:
    """Whether a device would run on what is ill: its GPU, or the slices of an instance.

    An instance that is no longer there says nothing of where it was: then it is the whole GPU.
    """
    if isinstance(face, faces.MonitorFace):
        return False
    place = _place(one.instance, face.gpu.mig)
    return place is None or not isinstance(face, faces.MigFace) or face.placement.overlaps(place)


def _place(instance: health.Instance | None, found: mig.Mig | None) -> mig.Placement | None:
    if instance is None or found is None:
        return None
    made = found.instance(instance.gpu_instance)
    return made.placement if made else None
