"""A GPU's MIG as NVML tells it: the mode, the profiles with their placements, the instances."""

import ctypes
from collections.abc import Iterator

import pynvml

from driver import errors, ids
from driver.devices import mig
from driver.kubeletplugin.nvml import calls

_PREFIX = "MIG "
_RESETLESS = 184
"""NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED (nvml.h)."""
_PROFILE_INFO_1, _PROFILE_INFO_2 = 1, 2
_SUFFIXES = {
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1: "+me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1: "+me",
}


def of_gpu(pci: ids.PciAddress, handle: object, total_bytes: int) -> mig.Mig | None:
    """MIG of a GPU; None where it has none. Raises DeviceFault.

    Profiles and placements are told with MIG off too; instances only with it on (node-layer §1.6).
    """
    modes = calls.maybe(pci, pynvml.nvmlDeviceGetMigMode, handle)
    if modes is None:
        return None
    enabled = modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    profiles = tuple(_profiles(pci, handle, total_bytes))
    return mig.Mig(
        enabled=enabled,
        resetless=_is_resetless(pci, handle),
        profiles=profiles,
        instances=tuple(_instances(pci, handle, profiles)) if enabled else (),
    )


def _is_resetless(pci: ids.PciAddress, handle: object) -> bool:
    """Whether the mode changes without a reset; a driver that does not know the field has none."""
    values = calls.maybe(pci, pynvml.nvmlDeviceGetFieldValues, handle, [_RESETLESS])
    if values is None or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return False
    return bool(values[0].value.uiVal)


def _profiles(pci: ids.PciAddress, handle: object, total_bytes: int) -> Iterator[mig.Profile]:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = calls.maybe(
            pci, pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, number, _PROFILE_INFO_2
        )
        name = "" if info is None else str(info.name).removeprefix(_PREFIX)
        if info is None:  # an older driver tells the same without the name
            info = calls.maybe(
                pci, pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, number, _PROFILE_INFO_1
            )
        if info is None:
            continue
        yield mig.Profile(
            id=int(info.id),
            name=name
            or mig.name_of(
                info.sliceCount, info.memorySizeMB, total_bytes, _SUFFIXES.get(number, "")
            ),
            compute_slices=int(info.sliceCount),
            memory_mib=int(info.memorySizeMB),
            instances=int(info.instanceCount),
            placements=_placements(pci, handle, int(info.id)),
            engines=mig.Engines(
                multiprocessors=int(info.multiprocessorCount),
                copy_engines=int(info.copyEngineCount),
                decoders=int(info.decoderCount),
                encoders=int(info.encoderCount),
                jpeg_engines=int(info.jpegCount),
                ofa_engines=int(info.ofaCount),
            ),
        )


def _placements(pci: ids.PciAddress, handle: object, profile: int) -> tuple[mig.Placement, ...]:
    call = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    count = ctypes.c_uint(0)
    calls.ask(pci, call, handle, profile, None, ctypes.byref(count))
    found = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    calls.ask(pci, call, handle, profile, found, ctypes.byref(count))
    return tuple(sorted(mig.Placement(int(at.start), int(at.size)) for at in found[: count.value]))


def _instances(
    pci: ids.PciAddress, handle: object, profiles: tuple[mig.Profile, ...]
) -> Iterator[mig.Instance]:
    spanning = dict(_devices(pci, handle))
    for profile in profiles:
        count = ctypes.c_uint(0)
        # The count bounds what the call writes: as many as an empty GPU would hold.
        found = (pynvml.c_nvmlGpuInstance_t * max(profile.instances, 1))()
        calls.ask(
            pci, pynvml.nvmlDeviceGetGpuInstances, handle, profile.id, found, ctypes.byref(count)
        )
        for instance in found[: count.value]:
            info = calls.ask(pci, pynvml.nvmlGpuInstanceGetInfo, instance)
            compute, uuid = spanning.get(int(info.id), (None, None))
            at = mig.Placement(int(info.placement.start), int(info.placement.size))
            yield mig.Instance(int(info.id), profile.id, at, compute, uuid)


def _devices(pci: ids.PciAddress, handle: object) -> Iterator[tuple[int, tuple[int, ids.MigUuid]]]:
    """MIG devices that are all of their GPU instance, by its id; gaps are NOT_FOUND."""
    most = calls.maybe(pci, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    for index in range(most):
        try:
            device = calls.ask(pci, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        except errors.DeviceFault as fault:
            if fault.code in (pynvml.NVML_ERROR_NOT_FOUND, *calls.ABSENT):
                continue
            raise
        shape = calls.ask(pci, pynvml.nvmlDeviceGetAttributes_v2, device)
        if shape.computeInstanceSliceCount != shape.gpuInstanceSliceCount:
            continue
        gpu_instance = int(calls.ask(pci, pynvml.nvmlDeviceGetGpuInstanceId, device))
        compute = int(calls.ask(pci, pynvml.nvmlDeviceGetComputeInstanceId, device))
        yield gpu_instance, (compute, ids.MigUuid(calls.ask(pci, pynvml.nvmlDeviceGetUUID, device)))
