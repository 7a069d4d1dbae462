"""Types of a plan. Pure: values in, values out.

A step changes hardware and knows its inverse, addressed by the plan and never by what was revealed,
so that it can be undone after a crash (D8). A device is the kubelet's view and the containers'
edits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from driver import ids
from driver.devices import faces, mig
from driver.resources.sharing import compatibility as shares

Arguments = Mapping[str, str | int]
NO_ARGUMENTS: Final[Arguments] = MappingProxyType({})
_REBOOTED = "rebooted"


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one GPU.

    `act` and `undo` name entries of the executor's table. An act is idempotent; an undo succeeds if
    there is nothing left to undo.
    """

    act: str
    undo: str
    gpu: ids.GpuUuid
    arguments: Arguments = field(default_factory=dict)

    @property
    def rebooted(self) -> bool:
        """Return whether it undoes something done before the machine's last boot."""
        return _REBOOTED in self.arguments

    def inverse(self, facts: Arguments = NO_ARGUMENTS, *, rebooted: bool = False) -> "Step":
        """Return the step that undoes this one, with the facts its execution revealed."""
        arguments = {**self.arguments, **facts, **({_REBOOTED: 1} if rebooted else {})}
        return Step(self.undo, self.act, self.gpu, arguments)


@dataclass(frozen=True, slots=True)
class Edits:
    """Container edits of a device, in terms of hardware: numbers are looked up late.

    `gpus` are those whose nodes it needs, `instance` its MIG instance, `daemon` the key of the MPS
    daemon for its processes.
    """

    gpus: tuple[ids.GpuUuid, ...] = ()
    instance: mig.InstanceRef | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    daemon: str = ""


@dataclass(frozen=True, slots=True)
class PlannedDevice:
    """One allocated device of a claim: `request` is a base name, `cdi_id` the qualified name.

    `terms` are those of a GPU shared with other claims; `shared_bytes` is the memory of all its
    shares together at that time, 0 if unknown. `subrequest` is the chosen alternative of a
    `firstAvailable` request.
    """

    request: str
    pool: str
    device: ids.DeviceName
    gpu: ids.GpuUuid
    cdi_id: str
    edits: Edits
    admin_access: bool = False
    share_id: str = ""
    terms: shares.SharingTerms | None = None
    subrequest: str = ""
    shared_bytes: int = 0

    @property
    def cdi_name(self) -> str:
        """The device's name in its CDI spec."""
        return self.cdi_id.partition("=")[2]

    @property
    def is_whole(self) -> bool:
        """Return whether it is a GPU without other claims' instances or shares."""
        return self.terms is None and self.edits.instance is None


@dataclass(frozen=True, slots=True)
class Grant:
    """A result of our driver in our pool: the face of a GPU, as the GPU is now."""

    request: str
    pool: str
    face: faces.Face
    admin_access: bool = False
    share_id: str = ""
    terms: shares.SharingTerms | None = None
    subrequest: str = ""

    def share_terms(self) -> shares.SharingTerms:
        """Return the terms of a share. Raises ValueError if it was granted without."""
        if self.terms is None:
            raise ValueError(f"{self.face.name} was granted without terms")
        return self.terms


def with_terms(grant: Grant, terms: shares.SharingTerms) -> Grant:
    """Return the grant of a share with its terms."""
    return replace(grant, terms=terms)


@dataclass(frozen=True, slots=True)
class GrantPlan:
    """Plan of one grant."""

    device: PlannedDevice
    steps: tuple[Step, ...] = ()


def plan_device(grant: Grant, cdi_id: str, edits: Edits) -> PlannedDevice:
    """Return the device of a grant."""
    shared = grant.face.memory_bytes if isinstance(grant.face, faces.ShareFace) else None
    return PlannedDevice(
        request=grant.request,
        pool=grant.pool,
        device=grant.face.name,
        gpu=grant.face.gpu.uuid,
        cdi_id=cdi_id,
        edits=edits,
        admin_access=grant.admin_access,
        share_id=grant.share_id,
        terms=grant.terms,
        subrequest=grant.subrequest,
        shared_bytes=shared or 0,
    )
