"""Cordons as device taints: on all faces of a GPU, the monitor's too. Pure."""

from collections.abc import Collection, Iterable

from driver import ids, names
from driver.devices import cordon, faces, model
from driver.resources.dra import slices

TAINT = slices.Taint(names.CORDONED_TAINT, "", "NoSchedule")


def taints(
    gpus: Iterable[model.Gpu], desired: Collection[str]
) -> dict[ids.DeviceName, tuple[slices.Taint, ...]]:
    """The taint for every device that a cordoned GPU may be published as."""
    return {
        face.name: (TAINT,)
        for gpu in gpus
        if cordon.is_named(desired, gpu)
        for face in faces.all_faces(gpu)
    }
