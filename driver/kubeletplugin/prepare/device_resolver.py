"""Resolves names of allocated devices to faces of the GPUs as they are now.

Only the name is taken from the API; profile, placement and instance come from the hardware.
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
    """Resolver of the node whose pool is `pool`; under static MIG no instance is created."""

    def __init__(
        self, pool: str, rules: offerings.NodeOfferings, gpus: discovery.Discovery
    ) -> None:
        self._pool = pool
        self._rules = rules
        self._gpus = gpus

    def locate(self, requested: Iterable[str]) -> Located | ports.Refused:
        """Return the GPUs of device names; all are re-read if one is not known.

        A hung GPU is refused at once: nothing could be done on it, and no program would run.
        """
        names = sorted(set(requested))
        if (refused := self._refuse_hung(names)) is not None:
            return refused
        try:
            by_name = _gpus_by_name(self._gpus.trusted())
            if not all(faces.gpu_name(name) in by_name for name in names):
                by_name = _gpus_by_name(self._gpus.refresh())
        except errors.DeviceFault as fault:
            return ports.Refused(reasons.Reason.DRIVER_NOT_READY, str(fault))
        gpus = {name: by_name.get(faces.gpu_name(name) or "") for name in names}
        if missing := [name for name, gpu in gpus.items() if gpu is None]:
            return _unknown_devices(
                missing, f"it has {', '.join(by_name) or 'no GPU that can be read'}"
            )
        return {name: gpu for name, gpu in gpus.items() if gpu is not None}

    def _refuse_hung(self, names: Sequence[str]) -> ports.Refused | None:
        """Return the refusal if a device is of a GPU with a hung call."""
        by_name = {faces.device_name(gpu.pci): gpu for gpu in self._gpus.current().all_gpus}
        for name in names:
            gpu = by_name.get(faces.gpu_name(name) or ids.DeviceName(""))
            hung = self._gpus.hung_call(gpu.uuid) if gpu is not None else None
            if hung is not None:
                text = f"{name}: {hung}; it is prepared once calls return again"
                return ports.Refused(reasons.Reason.GPU_UNREADABLE, text)
        return None

    def grant(
        self, results: Sequence[claims.Result], located: Located
    ) -> tuple[steps.Grant, ...] | ports.Refused:
        """Return a grant for each result; the caller holds the GPUs."""
        gpus = {gpu.uuid: gpu for gpu in located.values()}
        faces_by_name: dict[str, faces.Face | None] = {}
        try:
            for gpu in gpus.values():
                faces_by_name |= self._read_faces(
                    gpu, [name for name, item in located.items() if item is gpu]
                )
        except errors.Hung as hung:
            return ports.Refused(reasons.Reason.GPU_UNREADABLE, str(hung))
        except errors.DeviceFault as fault:
            return ports.Refused(reasons.Reason.DRIVER_NOT_READY, str(fault))
        granted: list[steps.Grant] = []
        for result in results:
            name = result.device.device
            face = faces_by_name[name]
            if face is None:
                now = self._gpus.current().by_uuid(located[name].uuid) or located[name]
                present = sorted({item.name for item in faces.all_faces(now)})
                return _unknown_devices([name], f"of its GPU there is {', '.join(present)}")
            if (refused := self._refuse_face(face, result)) is not None:
                return refused
            granted.append(_grant(result, face))
        return tuple(granted)

    def _read_faces(self, gpu: model.Gpu, requested: Sequence[str]) -> dict[str, faces.Face | None]:
        """Return faces of the GPU, re-read if a face is missing, or a part's placement changed.

        The instance at a part's placement decides what is done. If another hand makes one that
        overlaps a free placement, NVML refuses ours.
        """
        current = self._gpus.current().by_uuid(gpu.uuid) or gpu
        found_faces = {name: faces.find_face(current, name) for name in requested}
        if not self._is_current(current, found_faces.values()):
            current = self._gpus.refresh_gpu(gpu.uuid)
            found_faces = {name: faces.find_face(current, name) for name in requested}
        return {name: self._as_offered(face) for name, face in found_faces.items()}

    def _is_current(self, gpu: model.Gpu, requested: Iterable[faces.Face | None]) -> bool:
        """Return whether the faces of the GPU as last read are those of the GPU as it is."""
        parts: list[faces.MigFace] = []
        for face in requested:
            if face is None or (isinstance(face, faces.MigFace) and face.existing is not None):
                return False
            if isinstance(face, faces.MigFace):
                parts.append(face)
        return not parts or self._gpus.is_current(gpu, {part.profile.id for part in parts})

    def _as_offered(self, face: faces.Face | None) -> faces.Face | None:
        """Apply the memory factor: time-sliced claims may have more memory than the GPU."""
        if isinstance(face, faces.ShareFace) and face.sharing is faces.Sharing.TIME_SLICING:
            offering = self._rules.gpu_offering(self._pool, face.gpu)
            return replace(face, memory_factor=offering.memory_factor)
        return face

    def _refuse_face(self, face: faces.Face, result: claims.Result) -> ports.Refused | None:
        """Return the refusal of a face; monitors require admin access."""
        match face:
            case faces.MonitorFace() if not result.admin_access:
                text = f"{face.name} is for requests with adminAccess: true"
                return ports.Refused(reasons.Reason.ADMIN_ACCESS_REQUIRED, text, permanent=True)
            case faces.MigFace(instance=None):
                return self._refuse_instance(face, result)
            case _:
                return None

    def _refuse_instance(self, face: faces.MigFace, result: claims.Result) -> ports.Refused | None:
        """Return the refusal unless an instance exists, or may be created for its holder."""
        if result.admin_access:
            text = "no instance lies there that could be looked at"
            return None if face.existing else _unknown_devices([face.name], text)
        if self._rules.gpu_offering(self._pool, face.gpu).mig is faces.MigMode.STATIC:
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
    """Return GPUs by the names of their whole faces."""
    return {faces.device_name(gpu.pci): gpu for gpu in inventory.gpus}


def _unknown_devices(missing: Sequence[str], text: str) -> ports.Refused:
    reason = reasons.Reason.DEVICE_UNKNOWN
    return ports.Refused(reason, f"{', '.join(missing)} is not, or no longer, on this node; {text}")
