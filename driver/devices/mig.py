"""MIG as facts: profiles, placements and instances, and how they are named.

A placement is a run of memory slices; that two of them do not overlap is enough for them to
coexist, bar the engines that are scarcer than slices (`counters`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from driver import ids

_MIB = 1 << 20
_GIB_MIB = 1024
_EIGHTHS = 8


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """`nvmlGpuInstancePlacement_t`: `size` memory slices from `start` on."""

    start: int
    size: int

    def overlaps(self, other: "Placement") -> bool:
        """Whether a memory slice belongs to both."""
        return self.start < other.start + other.size and other.start < self.start + self.size

    @property
    def slices(self) -> range:
        """The memory slices."""
        return range(self.start, self.start + self.size)


@dataclass(frozen=True, slots=True)
class Engines:
    """What an instance has beside memory (nvmlGpuInstanceProfileInfo_t)."""

    multiprocessors: int = 0
    copy_engines: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """A GPU-instance profile of one GPU. `id` is what NVML's create call takes, not the enum.

    `name` is NVIDIA's (`1g.10gb+me`); `instances` is how many an empty GPU holds.
    """

    id: int
    name: str
    compute_slices: int
    memory_mib: int
    instances: int
    placements: tuple[Placement, ...]
    engines: Engines = Engines()

    @property
    def memory_bytes(self) -> int:
        """Of one instance."""
        return self.memory_mib * _MIB

    @property
    def slug(self) -> str:
        """The name as part of a device's name: `1g10gb`, `1g10gb-me`, `1g24gb-nome`."""
        plain = self.name.replace("-", "-no").replace("+", "-")
        return plain.replace(".", "").replace(",", "-").lower()


@dataclass(frozen=True, slots=True)
class Instance:
    """A GPU instance that exists, with the compute instance that spans all of it.

    `uuid` and `compute_instance` are None where there is no such compute instance (none yet, or
    several smaller ones): then it takes its place and is no device of ours. `ours`: made for a
    claim of this node, by its records; every other instance is somebody else's.
    """

    gpu_instance: int
    profile_id: int
    placement: Placement
    compute_instance: int | None = None
    uuid: ids.MigUuid | None = None
    ours: bool = False


@dataclass(frozen=True, slots=True)
class InstanceRef:
    """Where an instance of a profile lies, or is to lie; `uuid` where one of them is meant."""

    gpu: ids.GpuUuid
    profile_id: int
    placement: Placement
    uuid: ids.MigUuid | None = None

    def matches(self, instance: Instance) -> bool:
        """Whether an instance of its GPU is the one meant; one without a device may be."""
        if (instance.profile_id, instance.placement) != (self.profile_id, self.placement):
            return False
        return self.uuid is None or instance.uuid in {None, self.uuid}


@dataclass(frozen=True, slots=True)
class Mig:
    """A GPU's MIG. `resetless`: the mode changes without a GPU reset (Hopper and newer)."""

    enabled: bool
    resetless: bool
    profiles: tuple[Profile, ...]
    instances: tuple[Instance, ...] = ()

    def profile(self, profile_id: int) -> Profile | None:
        """By NVML's profile id."""
        return next((one for one in self.profiles if one.id == profile_id), None)

    @property
    def memory_slices(self) -> range:
        """Every memory slice that an instance can lie on."""
        ends = [at.start + at.size for one in self.profiles for at in one.placements]
        return range(max(ends, default=0))

    @property
    def foreign(self) -> tuple[Instance, ...]:
        """The instances that somebody else made."""
        return tuple(one for one in self.instances if not one.ours)

    def find(self, place: InstanceRef) -> Instance | None:
        """The instance that is meant by a place of this GPU."""
        return next((one for one in self.instances if place.matches(one)), None)

    def instance(self, gpu_instance: int) -> Instance | None:
        """By NVML's GPU-instance id."""
        return next((one for one in self.instances if one.gpu_instance == gpu_instance), None)


def mark_own(found: Mig, ours: Iterable[InstanceRef]) -> Mig:
    """The same MIG of one GPU, with the instances at `ours`, places of that GPU, known as ours."""
    places = tuple(ours)
    instances = tuple(
        replace(one, ours=any(place.matches(one) for place in places)) for one in found.instances
    )
    return replace(found, instances=instances)


def placements_by_size(profiles: Iterable[Profile]) -> list[tuple[Profile, Placement]]:
    """Every placement of every profile, the smallest first: the order in which faces are listed."""
    return sorted(
        ((one, at) for one in profiles for at in one.placements),
        key=lambda pair: (pair[1].size, pair[0].compute_slices, pair[0].name, pair[1].start),
    )


def profile_name(compute_slices: int, memory_mib: int, total_bytes: int, suffix: str = "") -> str:
    """NVIDIA's name for a profile that does not tell its own: `1g.23gb`.

    Gigabytes are the share in eighths of the GPU's, rounded half up (go-nvlib, mig profiles);
    Python's own rounding would call a B200's smallest 1g.22gb.
    """
    eighths = math.ceil(_EIGHTHS * memory_mib * _MIB / total_bytes)
    total_gib = math.ceil(total_bytes / _MIB / _GIB_MIB)
    return f"{compute_slices}g.{math.floor(eighths / _EIGHTHS * total_gib + 0.5)}gb{suffix}"
