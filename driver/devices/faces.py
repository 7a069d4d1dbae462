"""The faces a GPU is published as (D1): whole, MIG placements, shares, a monitor.

A face becomes one device of a ResourceSlice (`resources.publish`). Which of them a GPU has follows
from what it is now and from what is offered of it; that they exclude each other is the counters'.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from driver import ids, names
from driver.devices import counters, mig, model

FULL_COMPUTE_PERCENT = 100


class Kind(StrEnum):
    """Faces as named in configuration."""

    WHOLE = "whole"
    MIG = "mig"
    MPS = names.SHARING_MPS
    TIME_SLICING = names.SHARING_TIME_SLICING
    MONITOR = "monitor"


class Sharing(StrEnum):
    """Sharing mode of a GPU without MIG: the value of the attribute `sharing`."""

    MPS = names.SHARING_MPS
    TIME_SLICING = names.SHARING_TIME_SLICING


class MigMode(StrEnum):
    """MIG mode: every placement is offered, or only existing instances."""

    DYNAMIC = "dynamic"
    STATIC = "static"


DEFAULT_KINDS = frozenset({Kind.WHOLE, Kind.MIG, Kind.MPS, Kind.TIME_SLICING})
"""Faces offered by default."""
SHARED_KINDS = frozenset({Kind.MPS, Kind.TIME_SLICING})
"""Several claims may have them at once."""


@dataclass(frozen=True, slots=True)
class Offering:
    """Faces and shares offered of a GPU.

    `mps_shares` and `time_slices` are the number of shares of its shared faces; a claim that names
    no amount takes one. `memory_factor` is how many times the memory is allocated to time-sliced
    claims together: only accounting enforces it.
    """

    kinds: frozenset[Kind] = DEFAULT_KINDS
    mig: MigMode = MigMode.DYNAMIC
    mps_shares: int = 8
    time_slices: int = 8
    memory_factor: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class WholeFace:
    """The GPU as one device, for one claim at a time."""

    gpu: model.Gpu

    @property
    def name(self) -> ids.DeviceName:
        """Return `gpu-0000-18-00-0`, from the PCI address, which is stable unlike indices."""
        return device_name(self.gpu.pci)

    @property
    def consumes(self) -> counters.Counters:
        """Return all counters."""
        return counters.gpu_counters(self.gpu)


@dataclass(frozen=True, slots=True)
class MigFace:
    """A placement for an instance; with `instance`, an existing foreign one."""

    gpu: model.Gpu
    profile: mig.Profile
    placement: mig.Placement
    instance: mig.Instance | None = None

    @property
    def name(self) -> ids.DeviceName:
        """Return `gpu-0000-18-00-0-mig-1g10gb-4`: profile and first memory slice."""
        whole = device_name(self.gpu.pci)
        return ids.DeviceName(f"{whole}-mig-{self.profile.slug}-{self.placement.start}")

    @property
    def existing(self) -> mig.Instance | None:
        """Return the existing instance at the placement, ours or foreign."""
        if self.gpu.mig is None:
            return None
        return self.gpu.mig.find(mig.InstanceRef(self.gpu.uuid, self.profile.id, self.placement))

    @property
    def consumes(self) -> counters.Counters:
        """Return its memory slices and engines."""
        return counters.placement_counters(self.profile, self.placement)


@dataclass(frozen=True, slots=True)
class ShareFace:
    """The GPU shared by several claims at once; up to `shares` of it can be allocated."""

    gpu: model.Gpu
    sharing: Sharing
    shares: int
    memory_factor: Fraction = Fraction(1)

    @property
    def memory_bytes(self) -> int | None:
        """Return the memory of all shares together; None if the GPU does not report it."""
        whole = self.gpu.memory_bytes
        return None if whole is None else int(Fraction(whole) * self.memory_factor)

    @property
    def name(self) -> ids.DeviceName:
        """Return `gpu-0000-18-00-0-mps`, `gpu-0000-18-00-0-ts`."""
        suffix = "mps" if self.sharing is Sharing.MPS else "ts"
        return ids.DeviceName(f"{device_name(self.gpu.pci)}-{suffix}")

    @property
    def consumes(self) -> counters.Counters:
        """Return all counters, once for all its shares."""
        return counters.gpu_counters(self.gpu)


@dataclass(frozen=True, slots=True)
class MonitorFace:
    """The GPU for administrators' tools: it consumes nothing."""

    gpu: model.Gpu

    @property
    def name(self) -> ids.DeviceName:
        """Return `gpu-0000-18-00-0-monitor`."""
        return monitor_name(device_name(self.gpu.pci))

    @property
    def consumes(self) -> counters.Counters:
        """Return no counters."""
        return {}


Face = WholeFace | MigFace | ShareFace | MonitorFace

_DEVICE = re.compile(r"gpu(?:-[0-9a-f]+){3}-[0-7]")


def device_name(pci: ids.PciAddress) -> ids.DeviceName:
    """Return the name of the whole face of the GPU at a PCI address."""
    return ids.DeviceName("gpu-" + re.sub(r"[:.]", "-", pci))


def monitor_name(whole: ids.DeviceName) -> ids.DeviceName:
    """Return the name of the monitor face beside a whole face."""
    return ids.DeviceName(f"{whole}-monitor")


def gpu_name(device: str) -> ids.DeviceName | None:
    """Return the whole face's name for any face: `gpu-0000-18-00-0` for `gpu-0000-18-00-0-ts`.

    None if it is no face's name.
    """
    match = _DEVICE.match(device)
    return ids.DeviceName(match.group()) if match else None


def offered_faces(gpu: model.Gpu, offering: Offering) -> tuple[Face, ...]:
    """Return the faces of one GPU: whole, MIG by size, MPS, time-sliced, monitor (D1)."""
    return tuple(
        face for face in _possible_faces(gpu, offering) if _face_kind(face) in offering.kinds
    )


def all_faces(gpu: model.Gpu) -> Iterator[Face]:
    """Yield every face that a GPU may be published as now, under any offering."""
    for mode in MigMode:
        yield from _possible_faces(gpu, Offering(mig=mode))


def find_face(gpu: model.Gpu, name: str) -> Face | None:
    """Return the face of that name among `all_faces`; None if there is none."""
    return next((face for face in all_faces(gpu) if face.name == name), None)


def _possible_faces(gpu: model.Gpu, offering: Offering) -> Iterator[Face]:
    undivided = not _is_divided(gpu, offering)
    if undivided:
        yield WholeFace(gpu)
    yield from _mig_faces(gpu, offering)
    if undivided:
        yield ShareFace(gpu, Sharing.MPS, offering.mps_shares)
        yield ShareFace(gpu, Sharing.TIME_SLICING, offering.time_slices, offering.memory_factor)
    yield MonitorFace(gpu)


def _is_divided(gpu: model.Gpu, offering: Offering) -> bool:
    """Return whether only its instances are available: MIG is on and not ours to turn off."""
    if gpu.mig is None or not gpu.mig.enabled:
        return False
    fixed = not gpu.mig.resetless or offering.mig is MigMode.STATIC
    return fixed or bool(gpu.mig.foreign)


def _mig_faces(gpu: model.Gpu, offering: Offering) -> Iterator[MigFace]:
    """Yield foreign instances, and placements free of them.

    Our own come and go with their claims: their counters are consumed, and they hide no face.
    """
    if gpu.mig is None:
        return
    foreign = {other.placement: other for other in gpu.mig.foreign}
    free = offering.mig is MigMode.DYNAMIC and (gpu.mig.enabled or gpu.mig.resetless)
    for profile, placement in mig.placements_by_size(gpu.mig.profiles):
        instance = foreign.get(placement)
        if instance is not None and instance.profile_id == profile.id:
            if instance.uuid is not None:
                yield MigFace(gpu, profile, placement, instance)
        elif free and not any(placement.overlaps(taken) for taken in foreign):
            yield MigFace(gpu, profile, placement)


def _face_kind(face: Face) -> Kind:
    match face:
        case WholeFace():
            return Kind.WHOLE
        case MigFace():
            return Kind.MIG
        case ShareFace():
            return Kind(face.sharing)
        case MonitorFace():
            return Kind.MONITOR
