"""MIG facts: profiles, placements and instances, and their names.

A placement is a run of memory slices; two that do not overlap can coexist, except for the engines
that are scarcer than slices (`counters`).
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
        """Return whether a memory slice belongs to both."""
        return self.start < other.start + other.size and other.start < self.start + self.size

    @property
    def slices(self) -> range:
        """Return the memory slices."""
        return range(self.start, self.start + self.size)


@dataclass(frozen=True, slots=True)
class Engines:
    """Engines of an instance (nvmlGpuInstanceProfileInfo_t)."""

    multiprocessors: int = 0
    copy_engines: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """A GPU-instance profile of one GPU. `id` is what NVML's create call takes, not the enum.

    `name` is NVIDIA's (`1g.10gb+me`); `instances` is the number an empty GPU holds.
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
        """Return the memory of one instance."""
        return self.memory_mib * _MIB

    @property
    def slug(self) -> str:
        """Return the name as part of a device's name: `1g10gb`, `1g10gb-me`, `1g24gb-nome`."""
        plain = self.name.replace("-", "-no").replace("+", "-")
        return plain.replace(".", "").replace(",", "-").lower()


@dataclass(frozen=True, slots=True)
class Instance:
    """A GPU instance that exists, with the compute instance that spans all of it.

    `uuid` and `compute_instance` are None if there is no such compute instance (none yet, or
    several smaller ones): it occupies its placement and is no device of ours. `ours`: created for a
    claim of this node, by its records; every other instance is foreign.
    """

    gpu_instance: int
    profile_id: int
    placement: Placement
    compute_instance: int | None = None
    uuid: ids.MigUuid | None = None
    ours: bool = False


@dataclass(frozen=True, slots=True)
class InstanceRef:
    """Reference to an existing or future instance by profile and placement, and UUID if known."""

    gpu: ids.GpuUuid
    profile_id: int
    placement: Placement
    uuid: ids.MigUuid | None = None

    def matches(self, instance: Instance) -> bool:
        """Return whether an instance is the referenced one; one without a device may be."""
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
        """Return the profile of an NVML profile id."""
        return next((profile for profile in self.profiles if profile.id == profile_id), None)

    @property
    def memory_slices(self) -> range:
        """Return every memory slice that an instance can occupy."""
        ends = [
            placement.start + placement.size
            for profile in self.profiles
            for placement in profile.placements
        ]
        return range(max(ends, default=0))

    @property
    def foreign(self) -> tuple[Instance, ...]:
        """Return the foreign instances."""
        return tuple(instance for instance in self.instances if not instance.ours)

    def find(self, ref: InstanceRef) -> Instance | None:
        """Return the instance that a reference of this GPU matches."""
        return next((instance for instance in self.instances if ref.matches(instance)), None)

    def instance(self, gpu_instance: int) -> Instance | None:
        """Return the instance of an NVML GPU-instance id."""
        return next(
            (instance for instance in self.instances if instance.gpu_instance == gpu_instance), None
        )


def mark_own(layout: Mig, own_refs: Iterable[InstanceRef]) -> Mig:
    """Return the same MIG, its instances at `own_refs` (references of its GPU) marked as ours."""
    refs = tuple(own_refs)
    instances = tuple(
        replace(instance, ours=any(ref.matches(instance) for ref in refs))
        for instance in layout.instances
    )
    return replace(layout, instances=instances)


def placements_by_size(profiles: Iterable[Profile]) -> list[tuple[Profile, Placement]]:
    """Return every placement of every profile, smallest first, as faces are listed."""
    return sorted(
        ((profile, placement) for profile in profiles for placement in profile.placements),
        key=lambda pair: (pair[1].size, pair[0].compute_slices, pair[0].name, pair[1].start),
    )


def profile_name(compute_slices: int, memory_mib: int, total_bytes: int, suffix: str = "") -> str:
    """Return NVIDIA's name for a profile that reports none: `1g.23gb`.

    Gigabytes are the share in eighths of the GPU's, rounded half up (go-nvlib, mig profiles);
    Python's own rounding would call a B200's smallest 1g.22gb.
    """
    eighths = math.ceil(_EIGHTHS * memory_mib * _MIB / total_bytes)
    total_gib = math.ceil(total_bytes / _MIB / _GIB_MIB)
    return f"{compute_slices}g.{math.floor(eighths / _EIGHTHS * total_gib + 0.5)}gb{suffix}"
