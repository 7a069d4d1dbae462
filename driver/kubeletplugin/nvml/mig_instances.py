"""Changes of a GPU's MIG: mode, instances and their devices (D11). Raises DeviceFault.

Handles live within one use of the library, and nothing waits in it: waiting for processes to leave
delays only the GPU's next caller.
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
    """Implements `ports.Partitions`. Thread safe with one caller per GPU at a time."""

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
        """Turn MIG on; return whether it was off. A mode change that stays pending is reverted."""

        def enabled(handle: object) -> bool:
            return self._set_mode(gpu, handle, pynvml.NVML_DEVICE_MIG_ENABLE)

        return self._retry_in_use(lambda: self._session.run_on(gpu, enabled, MODE_S), patience_s)

    def disable(self, gpu: ids.GpuUuid, patience_s: float) -> bool:
        """Turn MIG off unless an instance remains; return whether it was turned off."""

        def disabled(handle: object) -> bool:
            if _is_mig_enabled(gpu, handle) and _has_instances(gpu, handle):
                return False
            return self._set_mode(gpu, handle, pynvml.NVML_DEVICE_MIG_DISABLE)

        return self._retry_in_use(lambda: self._session.run_on(gpu, disabled, MODE_S), patience_s)

    def create(self, ref: mig.InstanceRef) -> mig.Instance:
        """Create an instance and its one device at a free placement.

        If any call fails, what was created is destroyed. Raises Unchanged if nothing is left,
        DeviceFault if a part of it remains.
        """
        return self._session.run_on(ref.gpu, lambda handle: self._create(ref, handle))

    def destroy(self, ref: mig.InstanceRef, patience_s: float) -> None:
        """Destroy our instance at a placement, devices first; resume a half-done destroy.

        An instance with a device of another UUID is foreign, and stays.
        """

        def destroyed(handle: object) -> None:
            if _is_reachable(ref.gpu, handle) and _is_mig_enabled(ref.gpu, handle):
                for instance in list(_matching_instances(ref, handle)):
                    self._destroy(ref.gpu, instance)

        def once() -> None:
            try:
                self._session.run_on(ref.gpu, destroyed)
            except errors.DeviceFault as fault:
                if fault.code not in _GPU_GONE or fault.call not in _LOOKUPS:
                    raise

        self._retry_in_use(once, patience_s)

    def _create(self, ref: mig.InstanceRef, handle: object) -> mig.Instance:
        start, size = ref.placement.start, ref.placement.size
        placement = ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(start, size))
        create = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement
        with _unchanged_on_failure():
            instance = nvml_errors.call_nvml(ref.gpu, create, handle, ref.profile_id, placement)
        try:
            self._watch.on_point("GPU instance made")
            _create_compute(ref.gpu, instance)
            self._watch.on_point("compute instance made")
            return _read_back(ref, handle, instance)
        except errors.DeviceFault as fault:
            _log.warning("instance not made", place=ref, error=str(fault))
            self._destroy(ref.gpu, instance)
            raise _as_unchanged(fault) from fault

    def _set_mode(self, gpu: ids.GpuUuid, handle: object, desired: int) -> bool:
        current, pending = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetMigMode, handle)
        if current == pending == desired:
            return False
        # The call succeeds even if the mode did not change: the status tells (nvml.h).
        status = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceSetMigMode, handle, desired)
        self._watch.on_point("MIG mode asked for")
        if status == pynvml.NVML_SUCCESS:
            return bool(current != desired)
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
        """Retry until the GPU is no longer in use or `patience_s` ends; not within the library."""
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
    """Return whether the GPU answers by its handle; False if it is gone."""
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
    """Create the compute instance that spans a GPU instance.

    The profile follows from no number: an instance of one slice with the memory of two has a
    profile of its own. It is the profile with the most multiprocessors.
    """
    infos = list(_compute_profiles(gpu, instance))
    if not infos:
        raise nvml_errors.invalid_value(
            gpu, "nvmlGpuInstanceGetComputeInstanceProfileInfo", 0, "any profile"
        )
    whole = max(infos, key=lambda info: (int(info.multiprocessorCount), -int(info.id)))
    nvml_errors.call_nvml(gpu, pynvml.nvmlGpuInstanceCreateComputeInstance, instance, int(whole.id))


def _compute_profiles(gpu: str, instance: object) -> Iterator[Any]:
    call = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    for number in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        # The first version of the structure has all fields used here, and every driver knows it.
        info = nvml_errors.call_if_supported(gpu, call, instance, number, _SHARED, 1)
        if info is not None:
            yield info


def _compute_instances(gpu: str, instance: object) -> Iterator[object]:
    for profile in _compute_profiles(gpu, instance):
        count = ctypes.c_uint(0)
        instances = (pynvml.c_nvmlComputeInstance_t * _MOST_COMPUTE)()
        call = pynvml.nvmlGpuInstanceGetComputeInstances
        nvml_errors.call_nvml(gpu, call, instance, int(profile.id), instances, ctypes.byref(count))
        yield from instances[: count.value]


def _read_back(ref: mig.InstanceRef, handle: object, created: object) -> mig.Instance:
    """Re-read the created instance. Raises DeviceFault if it is not as requested."""
    info = nvml_errors.call_nvml(ref.gpu, pynvml.nvmlGpuInstanceGetInfo, created)
    for instance in mig_layout.read_instances(ref.gpu, handle, (ref.profile_id,)):
        if instance.gpu_instance == int(info.id) and ref.matches(instance) and instance.uuid:
            return instance
    call = "reading a new instance back"
    raise nvml_errors.invalid_value(
        ref.gpu, call, int(info.id), f"an instance with its device at {ref}"
    )


def _matching_instances(ref: mig.InstanceRef, handle: object) -> Iterator[object]:
    """Yield the GPU instances at a placement that may be ours."""
    uuids: dict[int, set[ids.MigUuid]] = {}
    for device in mig_layout.read_devices(ref.gpu, handle):
        uuids.setdefault(device.gpu_instance, set()).add(device.uuid)
    for instance in mig_layout.instance_handles(ref.gpu, handle, ref.profile_id):
        info = mig_layout.instance_info(ref.gpu, instance)
        if info is None:
            continue
        if mig.Placement(int(info.placement.start), int(info.placement.size)) != ref.placement:
            continue
        present = uuids.get(int(info.id), set())
        if ref.uuid is None or ref.uuid in present:
            yield instance
        elif present:
            _log.info("another's instance stays", place=ref, found=sorted(present))
        elif any(_compute_instances(ref.gpu, instance)):
            call = "telling whose an instance is"
            raise nvml_errors.invalid_value(
                ref.gpu, call, int(info.id), "one whose devices can be read"
            )
        else:
            yield instance


def _has_instances(gpu: str, handle: object) -> bool:
    call = pynvml.nvmlDeviceGetGpuInstanceProfileInfo
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = nvml_errors.call_if_supported(gpu, call, handle, number, 1)
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
