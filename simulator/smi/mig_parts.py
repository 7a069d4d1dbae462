"""MIG profiles and instances, walked as `nvidia-smi mig` walks them."""

from collections.abc import Iterator
from dataclasses import dataclass

from simulator import client, geometry, mig_calls
from simulator.smi import refusal, selection
from simulator.smi.selection import Nvml, Target


@dataclass(frozen=True, slots=True)
class Instance:
    """A GPU instance; `name` is its profile's."""

    handle: client.Handle
    info: mig_calls.GpuInstanceInfo
    name: str


@dataclass(frozen=True, slots=True)
class Compute:
    """A compute instance; `name` is its profile's."""

    handle: client.Handle
    info: mig_calls.ComputeInstanceInfo
    name: str


def refused(what: str, code: int) -> refusal.RefusedError:
    """One line that ends in NVML's words."""
    return refusal.RefusedError(f"{what}: {refusal.words(code)}\n", code)


def bare(name: str) -> str:
    """A profile's name without NVML's "MIG " in front."""
    return name.removeprefix("MIG ")


def profiles(nvml: Nvml, handle: client.Handle) -> list[mig_calls.GpuInstanceProfileInfo]:
    """What a GPU offers, small ones first."""
    infos = (
        selection.answer(nvml.device_get_gpu_instance_profile_info, handle, enum)
        for enum in range(geometry.PROFILE_COUNT)
    )
    return sorted(
        (info for info in infos if info is not None),
        key=lambda info: (info.slice_count, info.memory_size_mb, info.id),
    )


def instances(nvml: Nvml, target: Target, gi: str | None = None) -> Iterator[Instance]:
    """The GPU instances of a GPU, those of `gi` (ids parted by commas) when it is given."""
    wanted = gi.split(",") if gi else None
    for profile in profiles(nvml, target.handle):
        for handle in nvml.device_get_gpu_instances(target.handle, profile.id):
            info = nvml.gpu_instance_get_info(handle)
            if wanted is None or str(info.id) in wanted:
                yield Instance(handle, info, bare(profile.name))


def compute_profiles(
    nvml: Nvml, instance: client.Handle
) -> Iterator[mig_calls.ComputeInstanceProfileInfo]:
    """What a GPU instance offers, by NVML's enum."""
    for enum in range(geometry.COMPUTE_PROFILE_COUNT):
        info = selection.answer(
            nvml.gpu_instance_get_compute_instance_profile_info, instance, enum, 0
        )
        if info is not None:
            yield info


def whole_profile(nvml: Nvml, instance: client.Handle) -> mig_calls.ComputeInstanceProfileInfo:
    """The profile that takes all of a GPU instance."""
    return max(compute_profiles(nvml, instance), key=lambda info: info.slice_count)


def compute_instances(nvml: Nvml, of: Instance) -> Iterator[Compute]:
    """The compute instances of a GPU instance."""
    for profile in compute_profiles(nvml, of.handle):
        for handle in nvml.gpu_instance_get_compute_instances(of.handle, profile.id):
            yield Compute(handle, nvml.compute_instance_get_info(handle), bare(profile.name))
