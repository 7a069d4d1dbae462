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
    """Faces as a person names them in configuration."""

    WHOLE = "whole"
    MIG = "mig"
    MPS = names.SHARING_MPS
    TIME_SLICING = names.SHARING_TIME_SLICING
    MONITOR = "monitor"


class Sharing(StrEnum):
    """How a GPU is shared without MIG: the value of the attribute `sharing`."""

    MPS = names.SHARING_MPS
    TIME_SLICING = names.SHARING_TIME_SLICING


class MigMode(StrEnum):
    """What is done with MIG: every placement offered, or only the instances that exist."""

    DYNAMIC = "dynamic"
    STATIC = "static"


DEFAULT_KINDS = frozenset({Kind.WHOLE, Kind.MIG, Kind.MPS, Kind.TIME_SLICING})
"""Offered unless configuration says otherwise."""
SHARED_KINDS = frozenset({Kind.MPS, Kind.TIME_SLICING})
"""Several claims may have them at once."""


@dataclass(frozen=True, slots=True)
class Offering:
    """What is offered of a GPU.

    `mps_shares` and `time_slices` are how many shares its shared faces have; a claim that names no
    amount takes one. `memory_factor` is how many times the memory is given out to time-sliced
    claims together: nothing but accounting keeps them to it.
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
        """`gpu-0000-18-00-0`, from the PCI address: minors and indices move, it does not."""
        return device_name(self.gpu.pci)

    @property
    def consumes(self) -> counters.Counters:
        """Everything."""
        return counters.gpu_counters(self.gpu)


@dataclass(frozen=True, slots=True)
class MigFace:
    """A place for an instance; with `instance`, one that exists and that somebody else made."""

    gpu: model.Gpu
    profile: mig.Profile
    placement: mig.Placement
    instance: mig.Instance | None = None

    @property
    def name(self) -> ids.DeviceName:
        """`gpu-0000-18-00-0-mig-1g10gb-4`: profile and first memory slice."""
        whole = device_name(self.gpu.pci)
        return ids.DeviceName(f"{whole}-mig-{self.profile.slug}-{self.placement.start}")

    @property
    def existing(self) -> mig.Instance | None:
        """The instance that lies there now, whoever made it."""
        if self.gpu.mig is None:
            return None
        return self.gpu.mig.find(mig.InstanceRef(self.gpu.uuid, self.profile.id, self.placement))

    @property
    def consumes(self) -> counters.Counters:
        """Its memory slices and engines."""
        return counters.placement_counters(self.profile, self.placement)


@dataclass(frozen=True, slots=True)
class ShareFace:
    """The GPU shared by several claims at once; `shares` of it can be given out."""

    gpu: model.Gpu
    sharing: Sharing
    shares: int
    memory_factor: Fraction = Fraction(1)

    @property
    def memory_bytes(self) -> int | None:
        """What all shares have together; None where the GPU does not tell."""
        whole = self.gpu.memory_bytes
        return None if whole is None else int(Fraction(whole) * self.memory_factor)

    @property
    def name(self) -> ids.DeviceName:
        """`gpu-0000-18-00-0-mps`, `gpu-0000-18-00-0-ts`."""
        suffix = "mps" if self.sharing is Sharing.MPS else "ts"
        return ids.DeviceName(f"{device_name(self.gpu.pci)}-{suffix}")

    @property
    def consumes(self) -> counters.Counters:
        """Everything, once for all who share it."""
        return counters.gpu_counters(self.gpu)


@dataclass(frozen=True, slots=True)
class MonitorFace:
    """The GPU for administrators' tools: it takes nothing from anyone."""

    gpu: model.Gpu

    @property
    def name(self) -> ids.DeviceName:
        """`gpu-0000-18-00-0-monitor`."""
        return monitor_name(device_name(self.gpu.pci))

    @property
    def consumes(self) -> counters.Counters:
        """Nothing."""
        return {}


Face = WholeFace | MigFace | ShareFace | MonitorFace

_DEVICE = re.compile(r"gpu(?:-[0-9a-f]+){3}-[0-7]")


def device_name(pci: ids.PciAddress) -> ids.DeviceName:
    """The name of the whole face of the GPU at a PCI address."""
    return ids.DeviceName("gpu-" + re.sub(r"[:.]", "-", pci))


def monitor_name(whole: ids.DeviceName) -> ids.DeviceName:
    """The name of the monitor face beside a whole face."""
    return ids.DeviceName(f"{whole}-monitor")


def gpu_name(device: str) -> ids.DeviceName | None:
    """The name of the whole face beside any face: `gpu-0000-18-00-0-ts` is of `gpu-0000-18-00-0`.

    None for what is no face's name.
    """
    found = _DEVICE.match(device)
    return ids.DeviceName(found.group()) if found else None


def offered_faces(gpu: model.Gpu, offering: Offering) -> tuple[Face, ...]:
    """The faces of one GPU: whole, MIG by size, MPS, time-sliced, monitor (D1)."""
    return tuple(
        face for face in _possible_faces(gpu, offering) if _face_kind(face) in offering.kinds
    )


def all_faces(gpu: model.Gpu) -> Iterator[Face]:
    """Every face that a GPU may be published as now, whatever is offered of it."""
    for mode in MigMode:
        yield from _possible_faces(gpu, Offering(mig=mode))


def find_face(gpu: model.Gpu, name: str) -> Face | None:
    """The one of `every` that has a name; None: there is none."""
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
    """Whether only its parts can be had: MIG is on and is not ours to turn off."""
    if gpu.mig is None or not gpu.mig.enabled:
        return False
    fixed = not gpu.mig.resetless or offering.mig is MigMode.STATIC
    return fixed or bool(gpu.mig.foreign)


def _mig_faces(gpu: model.Gpu, offering: Offering) -> Iterator[MigFace]:
    """Instances that somebody else made, and the places that are free of them.

    Our own come and go with their claims: what they take is counted, and hides no face.
    """
    if gpu.mig is None:
        return
    there = {one.placement: one for one in gpu.mig.foreign}
    free = offering.mig is MigMode.DYNAMIC and (gpu.mig.enabled or gpu.mig.resetless)
    for profile, at in mig.placements_by_size(gpu.mig.profiles):
        instance = there.get(at)
        if instance is not None and instance.profile_id == profile.id:
            if instance.uuid is not None:
                yield MigFace(gpu, profile, at, instance)
        elif free and not any(at.overlaps(taken) for taken in there):
            yield MigFace(gpu, profile, at)


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
