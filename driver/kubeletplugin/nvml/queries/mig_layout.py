"""A GPU's MIG as NVML reports it: mode, profiles with placements, instances."""

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pynvml

from driver import errors, ids
from driver.devices import mig
from driver.kubeletplugin.nvml import errors as nvml_errors

_PREFIX = "MIG "
_RESETLESS = 184
"""NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED (nvml.h)."""
_PROFILE_INFO_1, _PROFILE_INFO_2 = 1, 2
_WIDE = pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1
_SHARED = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
_MOST_INSTANCES = 15
"""GPU instances that one GPU can have (NV-4)."""
_SUFFIXES = {
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1: "+me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1: "+me",
}


_NO_LONGER = {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT}
"""Errors of a handle just listed, once its instance has been destroyed."""


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A MIG device, with the slices of its compute instance and of its GPU instance."""

    gpu_instance: int
    compute_instance: int
    uuid: ids.MigUuid
    compute_slices: int
    gpu_slices: int
    multiprocessors: int


def read_mig(
    pci: ids.PciAddress, handle: object, total_bytes: int, previous: mig.Mig | None = None
) -> mig.Mig | None:
    """Return the GPU's MIG; None if it has none. Raises DeviceFault.

    Profiles and placements are reported with MIG off too; instances only with it on (NV-6). A
    loaded driver never changes them: they are taken from `previous`, an earlier reading.
    """
    if previous is not None:
        return reread_mig(pci, handle, previous)
    modes = nvml_errors.call_if_supported(pci, pynvml.nvmlDeviceGetMigMode, handle)
    if modes is None:
        return None
    enabled = modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    profiles = tuple(_read_profiles(pci, handle, total_bytes))
    return mig.Mig(
        enabled=enabled,
        resetless=_is_resetless(pci, handle),
        profiles=profiles,
        instances=read_instances(pci, handle, (profile.id for profile in profiles))
        if enabled
        else (),
    )


def reread_mig(pci: ids.PciAddress, handle: object, previous: mig.Mig) -> mig.Mig:
    """Re-read the mode and the instances of a GPU's MIG. Raises DeviceFault."""
    enabled = nvml_errors.call_nvml(pci, pynvml.nvmlDeviceGetMigMode, handle)[0] == (
        pynvml.NVML_DEVICE_MIG_ENABLE
    )
    profile_ids = (profile.id for profile in previous.profiles)
    instances = read_instances(pci, handle, profile_ids) if enabled else ()
    return replace(previous, enabled=enabled, instances=instances)


def is_current(
    pci: ids.PciAddress, handle: object, layout: mig.Mig, profile_ids: Iterable[int]
) -> bool:
    """Return whether the mode, and where instances of some profiles lie, are still as in `layout`.

    Raises DeviceFault.
    """
    modes = nvml_errors.call_nvml(pci, pynvml.nvmlDeviceGetMigMode, handle)
    if (modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE) is not layout.enabled:
        return False
    if not layout.enabled:
        return True
    chosen = frozenset(profile_ids)
    expected = {
        (instance.gpu_instance, instance.profile_id, instance.placement)
        for instance in layout.instances
        if instance.profile_id in chosen
    }
    present = {
        (int(info.id), profile_id, placement_of(info))
        for profile_id in chosen
        for instance in instance_handles(pci, handle, profile_id)
        if (info := instance_info(pci, instance)) is not None
    }
    return expected == present


def placement_of(info: Any) -> mig.Placement:  # noqa: ANN401 - pynvml's structures have no types
    """Return the placement in NVML's info of a GPU instance."""
    return mig.Placement(int(info.placement.start), int(info.placement.size))


def _is_resetless(pci: ids.PciAddress, handle: object) -> bool:
    """Return whether the mode changes without a reset; False if the driver lacks the field."""
    values = nvml_errors.call_optional(pci, pynvml.nvmlDeviceGetFieldValues, handle, [_RESETLESS])
    if values is None or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return False
    return bool(values[0].value.uiVal)


def _read_profiles(pci: ids.PciAddress, handle: object, total_bytes: int) -> Iterator[mig.Profile]:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = nvml_errors.call_if_supported(
            pci, pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, number, _PROFILE_INFO_2
        )
        name = "" if info is None else str(info.name).removeprefix(_PREFIX)
        if info is None:  # older drivers report the same without the name
            info = nvml_errors.call_if_supported(
                pci, pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, number, _PROFILE_INFO_1
            )
        if info is None:
            continue
        yield mig.Profile(
            id=int(info.id),
            name=name
            or mig.profile_name(
                info.sliceCount, info.memorySizeMB, total_bytes, _SUFFIXES.get(number, "")
            ),
            compute_slices=int(info.sliceCount),
            memory_mib=int(info.memorySizeMB),
            instances=int(info.instanceCount),
            placements=_read_placements(pci, handle, int(info.id)),
            engines=mig.Engines(
                multiprocessors=int(info.multiprocessorCount),
                copy_engines=int(info.copyEngineCount),
                decoders=int(info.decoderCount),
                encoders=int(info.encoderCount),
                jpeg_engines=int(info.jpegCount),
                ofa_engines=int(info.ofaCount),
            ),
        )


def _read_placements(
    pci: ids.PciAddress, handle: object, profile: int
) -> tuple[mig.Placement, ...]:
    call = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    count = ctypes.c_uint(0)
    nvml_errors.call_nvml(pci, call, handle, profile, None, ctypes.byref(count))
    placements = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    nvml_errors.call_nvml(pci, call, handle, profile, placements, ctypes.byref(count))
    return tuple(
        sorted(
            mig.Placement(int(placement.start), int(placement.size))
            for placement in placements[: count.value]
        )
    )


def read_instances(
    gpu: str, handle: object, profile_ids: Iterable[int]
) -> tuple[mig.Instance, ...]:
    """Return the GPU instances of some profiles; none with MIG off. Raises DeviceFault.

    Claims come and go meanwhile: an instance destroyed during the read is omitted.
    """
    devices_by_instance = {
        device.gpu_instance: device
        for device in read_devices(gpu, handle)
        if device.compute_slices == device.gpu_slices
    }
    result: list[mig.Instance] = []
    for profile in profile_ids:
        for instance in instance_handles(gpu, handle, profile):
            info = instance_info(gpu, instance)
            if info is None:
                continue
            device = devices_by_instance.get(int(info.id))
            if device is not None and not _is_whole_instance(gpu, instance, device):
                device = None
            result.append(
                mig.Instance(
                    gpu_instance=int(info.id),
                    profile_id=profile,
                    placement=placement_of(info),
                    compute_instance=device.compute_instance if device else None,
                    uuid=device.uuid if device else None,
                )
            )
    return tuple(result)


def _is_whole_instance(gpu: str, instance: object, device: MigDevice) -> bool:
    """Return whether a compute instance with all slices also has all multiprocessors.

    A wide GPU instance of one slice (1g.20gb of an H100) takes two compute profiles of one slice: a
    part, with the multiprocessors of a slice, and the whole.
    """
    if device.gpu_slices > 1:
        return True
    call = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    whole = nvml_errors.call_if_supported(gpu, call, instance, _WIDE, _SHARED, 1)
    return whole is None or device.multiprocessors >= int(whole.multiprocessorCount)


def instance_handles(gpu: str, handle: object, profile_id: int) -> tuple[object, ...]:
    """Return the handles of a profile's GPU instances; none with MIG off. Raises DeviceFault."""
    count = ctypes.c_uint(0)
    instances = (pynvml.c_nvmlGpuInstance_t * _MOST_INSTANCES)()
    call = pynvml.nvmlDeviceGetGpuInstances
    try:
        nvml_errors.call_nvml(gpu, call, handle, profile_id, instances, ctypes.byref(count))
    except errors.DeviceFault as fault:
        if fault.code != pynvml.NVML_ERROR_NOT_SUPPORTED:
            raise
        return ()
    return tuple(instances[: count.value])


def instance_info(gpu: str, instance: object) -> Any | None:  # noqa: ANN401 - as pynvml
    """Return NVML's info of a GPU instance; None if it is gone. Raises DeviceFault."""
    try:
        return nvml_errors.call_nvml(gpu, pynvml.nvmlGpuInstanceGetInfo, instance)
    except errors.DeviceFault as fault:
        if fault.code in _NO_LONGER:
            return None
        raise


def read_devices(gpu: str, handle: object) -> Iterator[MigDevice]:
    """Yield the MIG devices of a GPU. Raises DeviceFault."""
    count = nvml_errors.call_if_supported(gpu, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    for index in range(count):
        try:
            device = _read_device(gpu, handle, index)
        except errors.DeviceFault as fault:
            # A gap, or a device destroyed since it was listed.
            if fault.code in (pynvml.NVML_ERROR_NOT_FOUND, *nvml_errors.ABSENT):
                continue
            raise
        yield device


def find_device_handle(uuid: str, handle: object) -> object | None:
    """Return the handle of a MIG device of a GPU; None if it is gone. Raises DeviceFault."""
    count = nvml_errors.call_if_supported(uuid, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    for index in range(count):
        try:
            device = nvml_errors.call_nvml(
                uuid, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index
            )
            if nvml_errors.call_nvml(uuid, pynvml.nvmlDeviceGetUUID, device) == uuid:
                return device  # type: ignore[no-any-return]
        except errors.DeviceFault as fault:
            if fault.code not in (pynvml.NVML_ERROR_NOT_FOUND, *nvml_errors.ABSENT):
                raise
    return None


def _read_device(gpu: str, handle: object, index: int) -> MigDevice:
    device = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
    attributes = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetAttributes_v2, device)
    return MigDevice(
        gpu_instance=int(nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetGpuInstanceId, device)),
        compute_instance=int(
            nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetComputeInstanceId, device)
        ),
        uuid=ids.MigUuid(nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetUUID, device)),
        compute_slices=int(attributes.computeInstanceSliceCount),
        gpu_slices=int(attributes.gpuInstanceSliceCount),
        multiprocessors=int(attributes.multiprocessorCount),
    )
