"""Changes of a GPU's MIG: mode, instances and their devices (D11). Errors leave as DeviceFault.

Handles live within one use of the library, and nothing waits in it: who waits for processes to
leave holds up no one but the GPU's next caller.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pynvml
import structlog

from driver import clock, errors, ids
from driver.devices import mig
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls
from driver.kubeletplugin.nvml.queries import mig_layout
from driver.runtime.files import failpoints

_log = structlog.get_logger(__name__)
T = TypeVar("T")

_POLL_S = 0.25
_SHARED = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
_MOST_COMPUTE = 8
"""Compute instances that one GPU instance can have (NV-4)."""
_GPU_GONE = {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_GPU_IS_LOST}
"""The GPU has left, or is lost: no instance outlives the reset that brings it back (NV-5)."""
_LOOKUPS = {
    "nvmlDeviceGetHandleByPciBusId",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetUUID",
}
MODE_S = 20.0
"""Longest time of a call in an act that changes the mode, which may take a reset of the GPU."""
_NOT_AT_ONCE = {
    pynvml.NVML_ERROR_IN_USE: "it is in use by instances, processes or another program",
    pynvml.NVML_ERROR_RESET_REQUIRED: "the GPU would have to be reset",
    pynvml.NVML_ERROR_NOT_SUPPORTED: "this machine cannot change it",
}


class MigInstances:
    """Implements `ports.Partitions`. Thread safe, as long as one caller has a GPU at a time."""

    def __init__(
        self,
        session: gpu_calls.GpuSession,
        clock: clock.Clock,
        watch: failpoints.Observer = failpoints.NO_OBSERVER,
    ) -> None:
        self._session = session
        self._clock = clock
        self._watch = watch

    def enable(self, gpu: ids.GpuUuid, patience_s: float = 0.0) -> bool:
        """Have MIG on; whether it was off. A mode that would come later only is put back."""

        def enabled(handle: object) -> bool:
            return self._set_mode(gpu, handle, pynvml.NVML_DEVICE_MIG_ENABLE)

        return self._retry_in_use(lambda: self._session.run_on(gpu, enabled, MODE_S), patience_s)

    def disable(self, gpu: ids.GpuUuid, patience_s: float) -> bool:
        """Have MIG off, unless an instance is left; whether it was turned off."""

        def disabled(handle: object) -> bool:
            if _is_mig_enabled(gpu, handle) and _has_instances(gpu, handle):
                return False
            return self._set_mode(gpu, handle, pynvml.NVML_DEVICE_MIG_DISABLE)

        return self._retry_in_use(lambda: self._session.run_on(gpu, disabled, MODE_S), patience_s)

    def create(self, place: mig.InstanceRef) -> mig.Instance:
        """Make an instance at a place that nothing lies on, with its one device.

        What was made is destroyed when any call fails. Raises Unchanged when that leaves nothing,
        DeviceFault when a part of it is still there.
        """
        return self._session.run_on(place.gpu, lambda handle: self._create(place, handle))

    def destroy(self, place: mig.InstanceRef, patience_s: float) -> None:
        """Have none of ours at a place: devices first; what is half done is gone on with.

        An instance with a device of another UUID than the place's is somebody else's, and stays.
        """

        def destroyed(handle: object) -> None:
            if _is_reachable(place.gpu, handle) and _is_mig_enabled(place.gpu, handle):
                for instance in list(_matching_instances(place, handle)):
                    self._destroy(place.gpu, instance)

        def once() -> None:
            try:
                self._session.run_on(place.gpu, destroyed)
            except errors.DeviceFault as fault:
                if fault.code not in _GPU_GONE or fault.call not in _LOOKUPS:
                    raise

        self._retry_in_use(once, patience_s)

    def _create(self, place: mig.InstanceRef, handle: object) -> mig.Instance:
        start, size = place.placement.start, place.placement.size
        at = ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(start, size))
        create = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement
        with _unchanged_on_failure():
            made = nvml_errors.call_nvml(place.gpu, create, handle, place.profile_id, at)
        try:
            self._watch.on_point("GPU instance made")
            _create_compute(place.gpu, made)
            self._watch.on_point("compute instance made")
            return _read_back(place, handle, made)
        except errors.DeviceFault as fault:
            _log.warning("instance not made", place=place, error=str(fault))
            self._destroy(place.gpu, made)
            raise _as_unchanged(fault) from fault

    def _set_mode(self, gpu: ids.GpuUuid, handle: object, wanted: int) -> bool:
        current, pending = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetMigMode, handle)
        if current == pending == wanted:
            return False
        # The call succeeds although the mode may not have changed: the status tells (nvml.h).
        status = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceSetMigMode, handle, wanted)
        self._watch.on_point("MIG mode asked for")
        if status == pynvml.NVML_SUCCESS:
            return bool(current != wanted)
        nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceSetMigMode, handle, current)
        text = f"MIG mode stays {current}: {_NOT_AT_ONCE.get(status, 'the driver says no more')}"
        raise errors.Unchanged(gpu, "nvmlDeviceSetMigMode", status, text)

    def _destroy(self, gpu: str, instance: object) -> None:
        for compute in _compute_instances(gpu, instance):
            with _ignore_not_found():
                nvml_errors.call_nvml(gpu, pynvml.nvmlComputeInstanceDestroy, compute)
            self._watch.on_point("compute instance destroyed")
        with _ignore_not_found():
            nvml_errors.call_nvml(gpu, pynvml.nvmlGpuInstanceDestroy, instance)
        self._watch.on_point("GPU instance destroyed")

    def _retry_in_use(self, act: Callable[[], T], patience_s: float) -> T:
        """Try until the GPU is no longer in use, or patience ends; not within the library."""
        deadline = self._clock.monotonic() + patience_s
        while True:
            try:
                return act()
            except errors.DeviceFault as fault:
                in_use = fault.code == pynvml.NVML_ERROR_IN_USE
                if not in_use or self._clock.monotonic() >= deadline:
                    raise
            self._clock.wait(threading.Event(), _POLL_S)


def _is_reachable(gpu: ids.GpuUuid, handle: object) -> bool:
    """Whether the GPU answers by its handle; not where it has gone."""
    try:
        nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetMinorNumber, handle)
    except errors.DeviceFault as fault:
        if fault.code in _GPU_GONE:
            return False
        raise
    return True


def _is_mig_enabled(gpu: str, handle: object) -> bool:
    modes = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetMigMode, handle)
    return bool(modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE)


def _create_compute(gpu: str, instance: object) -> None:
    """The compute instance that is all of a GPU instance.

    Which profile that is follows from no number: an instance of one slice with the memory of two
    takes a profile of its own. It is the one with the most multiprocessors.
    """
    infos = list(_compute_profiles(gpu, instance))
    if not infos:
        raise nvml_errors.invalid_value(
            gpu, "nvmlGpuInstanceGetComputeInstanceProfileInfo", 0, "any profile"
        )
    whole = max(infos, key=lambda info: (int(info.multiprocessorCount), -int(info.id)))
    nvml_errors.call_nvml(gpu, pynvml.nvmlGpuInstanceCreateComputeInstance, instance, int(whole.id))


def _compute_profiles(gpu: str, instance: object) -> Iterator[Any]:
    ask = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    for number in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        # The first version of the structure has all that is asked, and every driver knows it.
        info = nvml_errors.call_if_supported(gpu, ask, instance, number, _SHARED, 1)
        if info is not None:
            yield info


def _compute_instances(gpu: str, instance: object) -> Iterator[object]:
    for profile in _compute_profiles(gpu, instance):
        count = ctypes.c_uint(0)
        found = (pynvml.c_nvmlComputeInstance_t * _MOST_COMPUTE)()
        call = pynvml.nvmlGpuInstanceGetComputeInstances
        nvml_errors.call_nvml(gpu, call, instance, int(profile.id), found, ctypes.byref(count))
        yield from found[: count.value]


def _read_back(place: mig.InstanceRef, handle: object, made: object) -> mig.Instance:
    """What was made, as the GPU itself tells it. Raises DeviceFault when it is not as asked."""
    info = nvml_errors.call_nvml(place.gpu, pynvml.nvmlGpuInstanceGetInfo, made)
    for found in mig_layout.read_instances(place.gpu, handle, (place.profile_id,)):
        if found.gpu_instance == int(info.id) and place.matches(found) and found.uuid:
            return found
    call = "reading a new instance back"
    raise nvml_errors.invalid_value(
        place.gpu, call, int(info.id), f"an instance with its device at {place}"
    )


def _matching_instances(place: mig.InstanceRef, handle: object) -> Iterator[object]:
    """The GPU instances at a place that may be ours."""
    uuids: dict[int, set[ids.MigUuid]] = {}
    for device in mig_layout.read_devices(place.gpu, handle):
        uuids.setdefault(device.gpu_instance, set()).add(device.uuid)
    for instance in mig_layout.instance_handles(place.gpu, handle, place.profile_id):
        info = mig_layout.instance_info(place.gpu, instance)
        if info is None:
            continue
        if mig.Placement(int(info.placement.start), int(info.placement.size)) != place.placement:
            continue
        there = uuids.get(int(info.id), set())
        if place.uuid is None or place.uuid in there:
            yield instance
        elif there:
            _log.info("another's instance stays", place=place, found=sorted(there))
        elif any(_compute_instances(place.gpu, instance)):
            call = "telling whose an instance is"
            raise nvml_errors.invalid_value(
                place.gpu, call, int(info.id), "one whose devices can be read"
            )
        else:
            yield instance


def _has_instances(gpu: str, handle: object) -> bool:
    ask = pynvml.nvmlDeviceGetGpuInstanceProfileInfo
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = nvml_errors.call_if_supported(gpu, ask, handle, number, 1)
        if info is not None and mig_layout.instance_handles(gpu, handle, int(info.id)):
            return True
    return False


def _as_unchanged(fault: errors.DeviceFault) -> errors.Unchanged:
    return errors.Unchanged(fault.device, fault.call, fault.code, fault.text)


@contextlib.contextmanager
def _unchanged_on_failure() -> Iterator[None]:
    try:
        yield
    except errors.Hung:
        raise
    except errors.DeviceFault as fault:
        raise _as_unchanged(fault) from fault


@contextlib.contextmanager
def _ignore_not_found() -> Iterator[None]:
    try:
        yield
    except errors.DeviceFault as fault:
        if fault.code != pynvml.NVML_ERROR_NOT_FOUND:
            raise
