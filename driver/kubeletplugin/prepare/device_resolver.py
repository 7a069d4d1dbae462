"""What the names of allocated devices stand for: faces of the GPUs as they are now.

A name is all that is taken from the API; profile, place and instance come from the hardware.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from driver import errors, ids, reasons
from driver.api import offerings
from driver.devices import faces, model
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import discovery
from driver.kubeletplugin.plan import steps
from driver.resources.dra import claims

Located = dict[str, model.Gpu]
"""The GPUs behind device names."""


class DeviceResolver:
    """Of the node whose pool is `pool`; where MIG is static by `rules`, no instance is made."""

    def __init__(
        self, pool: str, rules: offerings.NodeOfferings, gpus: discovery.Discovery
    ) -> None:
        self._pool = pool
        self._rules = rules
        self._gpus = gpus

    def locate(self, wanted: Iterable[str]) -> Located | ports.Refused:
        """The GPUs behind device names; all are read again when one is not known.

        One that hangs is refused at once: nothing could be done on it, and no program would run.
        """
        names = sorted(set(wanted))
        if (refused := self._refuse_hung(names)) is not None:
            return refused
        try:
            known = _gpus_by_name(self._gpus.trusted())
            if not all(faces.gpu_name(name) in known for name in names):
                known = _gpus_by_name(self._gpus.refresh())
        except errors.DeviceFault as fault:
            return ports.Refused(reasons.Reason.DRIVER_NOT_READY, str(fault))
        found = {name: known.get(faces.gpu_name(name) or "") for name in names}
        if missing := [name for name, gpu in found.items() if gpu is None]:
            return _unknown_devices(
                missing, f"it has {', '.join(known) or 'no GPU that can be read'}"
            )
        return {name: gpu for name, gpu in found.items() if gpu is not None}

    def _refuse_hung(self, names: Sequence[str]) -> ports.Refused | None:
        """Whether a device is of a GPU whose calls do not return."""
        known = {faces.device_name(gpu.pci): gpu for gpu in self._gpus.current().known}
        for name in names:
            gpu = known.get(faces.gpu_name(name) or ids.DeviceName(""))
            hung = self._gpus.hung_call(gpu.uuid) if gpu is not None else None
            if hung is not None:
                text = f"{name}: {hung}; it is prepared once calls return again"
                return ports.Refused(reasons.Reason.GPU_UNREADABLE, text)
        return None

    def grant(
        self, results: Sequence[claims.Result], located: Located
    ) -> tuple[steps.Grant, ...] | ports.Refused:
        """A grant for each result; the caller holds the GPUs."""
        distinct = {gpu.uuid: gpu for gpu in located.values()}
        known: dict[str, faces.Face | None] = {}
        try:
            for gpu in distinct.values():
                known |= self._read_faces(
                    gpu, [name for name, one in located.items() if one is gpu]
                )
        except errors.Hung as hung:
            return ports.Refused(reasons.Reason.GPU_UNREADABLE, str(hung))
        except errors.DeviceFault as fault:
            return ports.Refused(reasons.Reason.DRIVER_NOT_READY, str(fault))
        granted: list[steps.Grant] = []
        for result in results:
            name = result.device.device
            face = known[name]
            if face is None:
                now = self._gpus.current().by_uuid(located[name].uuid) or located[name]
                there = sorted({one.name for one in faces.all_faces(now)})
                return _unknown_devices([name], f"of its GPU there is {', '.join(there)}")
            if (refused := self._refuse_face(face, result)) is not None:
                return refused
            granted.append(_grant(result, face))
        return tuple(granted)

    def _read_faces(self, gpu: model.Gpu, wanted: Sequence[str]) -> dict[str, faces.Face | None]:
        """Faces of the GPU. It is read again for a part of it, and where a face is missed.

        What lies at a part's place decides what is done.
        """
        now = self._gpus.current().by_uuid(gpu.uuid) or gpu
        known = {name: faces.find_face(now, name) for name in wanted}
        if any(face is None or isinstance(face, faces.MigFace) for face in known.values()):
            now = self._gpus.refresh_gpu(gpu.uuid)
            known = {name: faces.find_face(now, name) for name in wanted}
        return {name: self._as_offered(face) for name, face in known.items()}

    def _as_offered(self, face: faces.Face | None) -> faces.Face | None:
        """Turns on a GPU may have more memory together than it has."""
        if isinstance(face, faces.ShareFace) and face.sharing is faces.Sharing.TIME_SLICING:
            offered = self._rules.of(self._pool, face.gpu)
            return replace(face, memory_factor=offered.memory_factor)
        return face

    def _refuse_face(self, face: faces.Face, result: claims.Result) -> ports.Refused | None:
        """Monitors are for administrators."""
        match face:
            case faces.MonitorFace() if not result.admin_access:
                text = f"{face.name} is for requests with adminAccess: true"
                return ports.Refused(reasons.Reason.ADMIN_ONLY, text, permanent=True)
            case faces.MigFace(instance=None):
                return self._refuse_instance(face, result)
            case _:
                return None

    def _refuse_instance(self, face: faces.MigFace, result: claims.Result) -> ports.Refused | None:
        """An instance is made for who holds it, where MIG is not static."""
        if result.admin_access:
            text = "no instance lies there that could be looked at"
            return None if face.existing else _unknown_devices([face.name], text)
        if self._rules.of(self._pool, face.gpu).mig is faces.MigMode.STATIC:
            return _unknown_devices(
                [face.name], "its GPU has static MIG, where no instance is made"
            )
        return None


def _grant(result: claims.Result, face: faces.Face) -> steps.Grant:
    return steps.Grant(
        request=result.base_request,
        pool=result.device.pool,
        face=face,
        admin_access=result.admin_access,
        share_id=result.share_id,
        subrequest=result.subrequest,
    )


def _gpus_by_name(inventory: model.Inventory) -> Located:
    """GPUs by the names of their whole faces."""
    return {faces.device_name(gpu.pci): gpu for gpu in inventory.gpus}


def _unknown_devices(missing: Sequence[str], text: str) -> ports.Refused:
    reason = reasons.Reason.DEVICE_UNKNOWN
    return ports.Refused(reason, f"{', '.join(missing)} is not, or no longer, on this node; {text}")
