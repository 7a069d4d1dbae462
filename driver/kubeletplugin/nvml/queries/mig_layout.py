"""A GPU's MIG as NVML tells it: the mode, the profiles with their placements, the instances."""

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
"""What a handle that was just listed may answer, once somebody has destroyed what it stood for."""


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A MIG device, with the slices of its compute instance and of its GPU instance."""

    gpu_instance: int
    compute_instance: int
    uuid: ids.MigUuid
    compute_slices: int
    gpu_slices: int
    multiprocessors: int


def read_mig(pci: ids.PciAddress, handle: object, total_bytes: int) -> mig.Mig | None:
    """MIG of a GPU; None where it has none. Raises DeviceFault.

    Profiles and placements are told with MIG off too; instances only with it on (NV-6).
    """
    modes = nvml_errors.call_if_supported(pci, pynvml.nvmlDeviceGetMigMode, handle)
    if modes is None:
        return None
    enabled = modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    profiles = tuple(_read_profiles(pci, handle, total_bytes))
    return mig.Mig(
        enabled=enabled,
        resetless=_is_resetless(pci, handle),
        profiles=profiles,
        instances=read_instances(pci, handle, (one.id for one in profiles)) if enabled else (),
    )


def reread_mig(pci: ids.PciAddress, handle: object, before: mig.Mig) -> mig.Mig:
    """What changes of a GPU's MIG, read again: the mode and the instances. Raises DeviceFault."""
    enabled = nvml_errors.call_nvml(pci, pynvml.nvmlDeviceGetMigMode, handle)[0] == (
        pynvml.NVML_DEVICE_MIG_ENABLE
    )
    ids_ = (one.id for one in before.profiles)
    found = read_instances(pci, handle, ids_) if enabled else ()
    return replace(before, enabled=enabled, instances=found)


def _is_resetless(pci: ids.PciAddress, handle: object) -> bool:
    """Whether the mode changes without a reset; a driver that does not know the field has none."""
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
        if info is None:  # an older driver tells the same without the name
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
    found = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    nvml_errors.call_nvml(pci, call, handle, profile, found, ctypes.byref(count))
    return tuple(sorted(mig.Placement(int(at.start), int(at.size)) for at in found[: count.value]))


def read_instances(
    where: str, handle: object, profile_ids: Iterable[int]
) -> tuple[mig.Instance, ...]:
    """The GPU instances of some profiles; none with MIG off. Raises DeviceFault.

    Claims come and go meanwhile: an instance that goes while it is read is not there.
    """
    devices_by_instance = {
        device.gpu_instance: device
        for device in read_devices(where, handle)
        if device.compute_slices == device.gpu_slices
    }
    found: list[mig.Instance] = []
    for profile in profile_ids:
        for instance in instance_handles(where, handle, profile):
            info = instance_info(where, instance)
            if info is None:
                continue
            device = devices_by_instance.get(int(info.id))
            if device is not None and not _is_whole_instance(where, instance, device):
                device = None
            found.append(
                mig.Instance(
                    gpu_instance=int(info.id),
                    profile_id=profile,
                    placement=mig.Placement(int(info.placement.start), int(info.placement.size)),
                    compute_instance=device.compute_instance if device else None,
                    uuid=device.uuid if device else None,
                )
            )
    return tuple(found)


def _is_whole_instance(where: str, instance: object, device: MigDevice) -> bool:
    """Whether a compute instance with all slices of its GPU instance has all multiprocessors too.

    A GPU instance of one slice that is wide (1g.20gb of an H100) takes two compute profiles of one
    slice: a part, with the multiprocessors of a slice, and the whole.
    """
    if device.gpu_slices > 1:
        return True
    ask = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    whole = nvml_errors.call_if_supported(where, ask, instance, _WIDE, _SHARED, 1)
    return whole is None or device.multiprocessors >= int(whole.multiprocessorCount)


def instance_handles(where: str, handle: object, profile_id: int) -> tuple[object, ...]:
    """The handles of a profile's GPU instances; none with MIG off. Raises DeviceFault."""
    count = ctypes.c_uint(0)
    found = (pynvml.c_nvmlGpuInstance_t * _MOST_INSTANCES)()
    call = pynvml.nvmlDeviceGetGpuInstances
    try:
        nvml_errors.call_nvml(where, call, handle, profile_id, found, ctypes.byref(count))
    except errors.DeviceFault as fault:
        if fault.code != pynvml.NVML_ERROR_NOT_SUPPORTED:
            raise
        return ()
    return tuple(found[: count.value])


def instance_info(where: str, instance: object) -> Any | None:  # noqa: ANN401 - as pynvml
    """What a GPU instance says of itself; None when it has gone. Raises DeviceFault."""
    try:
        return nvml_errors.call_nvml(where, pynvml.nvmlGpuInstanceGetInfo, instance)
    except errors.DeviceFault as fault:
        if fault.code in _NO_LONGER:
            return None
        raise


def read_devices(where: str, handle: object) -> Iterator[MigDevice]:
    """The MIG devices of a GPU. Raises DeviceFault."""
    most = nvml_errors.call_if_supported(where, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    for index in range(most):
        try:
            found = _read_device(where, handle, index)
        except errors.DeviceFault as fault:
            # A gap, or a device that somebody has destroyed since it was found.
            if fault.code in (pynvml.NVML_ERROR_NOT_FOUND, *nvml_errors.ABSENT):
                continue
            raise
        yield found


def find_device_handle(uuid: str, handle: object) -> object | None:
    """The handle of a MIG device of a GPU; None where it is no longer. Raises DeviceFault."""
    most = nvml_errors.call_if_supported(uuid, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    for index in range(most):
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


def _read_device(where: str, handle: object, index: int) -> MigDevice:
    device = nvml_errors.call_nvml(where, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
    shape = nvml_errors.call_nvml(where, pynvml.nvmlDeviceGetAttributes_v2, device)
    return MigDevice(
        gpu_instance=int(nvml_errors.call_nvml(where, pynvml.nvmlDeviceGetGpuInstanceId, device)),
        compute_instance=int(
            nvml_errors.call_nvml(where, pynvml.nvmlDeviceGetComputeInstanceId, device)
        ),
        uuid=ids.MigUuid(nvml_errors.call_nvml(where, pynvml.nvmlDeviceGetUUID, device)),
        compute_slices=int(shape.computeInstanceSliceCount),
        gpu_slices=int(shape.gpuInstanceSliceCount),
        multiprocessors=int(shape.multiprocessorCount),
    )
