"""Changes of a GPU's MIG: mode, instances and their devices (D11). Raises DeviceFault.

Handles live within one use of the library, and nothing waits in it: waiting for processes to leave
delays only the GPU's next caller.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
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
        self._facts = _ProfileFacts(session)

    def enable(self, gpu: ids.GpuUuid, patience_s: float = 0.0) -> bool:
        """Turn MIG on; return whether it was off. A mode change that stays pending is reverted."""

        def enabled(handle: object) -> bool:
            return self._set_mode(gpu, handle, pynvml.NVML_DEVICE_MIG_ENABLE, _modes(gpu, handle))

        return self._retry_in_use(lambda: self._session.run_on(gpu, enabled, MODE_S), patience_s)

    def disable(self, gpu: ids.GpuUuid, patience_s: float) -> bool:
        """Turn MIG off unless an instance remains; return whether it was turned off."""

        def disabled(handle: object) -> bool:
            on, off = pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_DISABLE
            if self._is_empty(gpu, handle):
                return self._set_mode(gpu, handle, off, (on, on))
            modes = _modes(gpu, handle)
            if modes[0] == on and self._has_instances(gpu, handle):
                return False
            return self._set_mode(gpu, handle, off, modes)

        return self._retry_in_use(lambda: self._session.run_on(gpu, disabled, MODE_S), patience_s)

    def create(self, ref: mig.InstanceRef) -> mig.Instance:
        """Create an instance and its one device at a free placement.

        If any call fails, what was created is destroyed. Raises Unchanged if nothing is left,
        DeviceFault if a part of it remains.
        """
        return self._session.run_on(ref.gpu, lambda handle: self._create(ref, handle))

    def destroy(
        self, ref: mig.InstanceRef, patience_s: float, created: mig.Instance | None = None
    ) -> None:
        """Destroy our instance at a placement, devices first; resume a half-done destroy.

        An instance with a device of another UUID is foreign, and stays. `created` is found by its
        ids; if it is not there as created, the placement is searched.
        """

        def destroyed(handle: object) -> None:
            if created is not None and self._destroy_created(ref.gpu, handle, created):
                return
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
            profile = self._facts.whole_compute_profile(ref, instance)
            compute = nvml_errors.call_nvml(
                ref.gpu, pynvml.nvmlGpuInstanceCreateComputeInstance, instance, profile
            )
            self._watch.on_point("compute instance made")
            return _read_back(ref, handle, instance, compute)
        except errors.DeviceFault as fault:
            _log.warning("instance not made", place=ref, error=str(fault))
            self._destroy(ref.gpu, instance)
            raise _as_unchanged(fault) from fault

    def _set_mode(
        self, gpu: ids.GpuUuid, handle: object, desired: int, modes: tuple[int, int]
    ) -> bool:
        """Change the mode from `modes`, the current and the pending one."""
        current, pending = modes
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

    def _is_empty(self, gpu: ids.GpuUuid, handle: object) -> bool:
        """Return whether MIG is on without any instance: then the largest profile has room."""
        profiles = self._facts.instance_profiles(gpu, handle)
        call = pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity
        return bool(nvml_errors.call_optional(gpu, call, handle, profiles[0]))

    def _has_instances(self, gpu: ids.GpuUuid, handle: object) -> bool:
        """Return whether an instance of any profile exists."""
        profiles = self._facts.instance_profiles(gpu, handle)
        return any(mig_layout.instance_handles(gpu, handle, profile) for profile in profiles)

    def _destroy_created(self, gpu: ids.GpuUuid, handle: object, created: mig.Instance) -> bool:
        """Destroy an instance found by its ids; return False if it is not there as created."""
        try:
            instance = nvml_errors.call_nvml(
                gpu, pynvml.nvmlDeviceGetGpuInstanceById, handle, created.gpu_instance
            )
            compute = nvml_errors.call_nvml(
                gpu,
                pynvml.nvmlGpuInstanceGetComputeInstanceById,
                instance,
                created.compute_instance,
            )
            if _read_device(gpu, compute)[1] != created.uuid:
                return False
        except errors.Hung:
            raise
        except errors.DeviceFault:
            return False
        nvml_errors.call_nvml(gpu, pynvml.nvmlComputeInstanceDestroy, compute)
        self._watch.on_point("compute instance destroyed")
        try:
            nvml_errors.call_nvml(gpu, pynvml.nvmlGpuInstanceDestroy, instance)
        except errors.DeviceFault as fault:
            if fault.code != pynvml.NVML_ERROR_IN_USE:
                raise
            self._destroy(gpu, instance)  # another hand made a compute instance in ours
        else:
            self._watch.on_point("GPU instance destroyed")
        return True

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


def _modes(gpu: str, handle: object) -> tuple[int, int]:
    """Return the current and the pending mode."""
    current, pending = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetMigMode, handle)
    return int(current), int(pending)


def _is_mig_enabled(gpu: str, handle: object) -> bool:
    return _modes(gpu, handle)[0] == int(pynvml.NVML_DEVICE_MIG_ENABLE)


class _ProfileFacts:
    """Facts of profiles, which no loaded driver changes: read once per start of the library."""

    def __init__(self, session: gpu_calls.GpuSession) -> None:
        self._session = session
        self._cached: dict[tuple[str, int | None], tuple[int, Any]] = {}

    def whole_compute_profile(self, ref: mig.InstanceRef, instance: object) -> int:
        """Return the profile of the compute instance that spans a GPU instance.

        Raises DeviceFault.
        """
        key = ref.gpu, ref.profile_id
        return self._read_once(key, lambda: _whole_compute_profile(ref.gpu, instance))

    def instance_profiles(self, gpu: ids.GpuUuid, handle: object) -> tuple[int, ...]:
        """Return the GPU-instance profiles, the largest first. Raises DeviceFault."""
        return self._read_once((gpu, None), lambda: _instance_profiles(gpu, handle))

    def _read_once(self, key: tuple[str, int | None], read: Callable[[], T]) -> T:
        number = self._session.number
        cached = self._cached.get(key)
        if cached is None or cached[0] != number:
            cached = self._cached[key] = (number, read())
        value: T = cached[1]
        return value


def _whole_compute_profile(gpu: str, instance: object) -> int:
    """Return the profile of the compute instance that spans a GPU instance.

    It follows from no number: an instance of one slice with the memory of two has a profile of its
    own. It is the profile with the most multiprocessors.
    """
    infos = list(_compute_profiles(gpu, instance))
    if not infos:
        call = "nvmlGpuInstanceGetComputeInstanceProfileInfo"
        raise nvml_errors.invalid_value(gpu, call, 0, "any profile")
    whole = max(infos, key=lambda info: (int(info.multiprocessorCount), -int(info.id)))
    return int(whole.id)


def _instance_profiles(gpu: str, handle: object) -> tuple[int, ...]:
    call = pynvml.nvmlDeviceGetGpuInstanceProfileInfo
    infos = (
        nvml_errors.call_if_supported(gpu, call, handle, profile, 1)
        for profile in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
    )
    sizes = {int(i.id): (int(i.sliceCount), int(i.memorySizeMB)) for i in infos if i}
    if not sizes:
        raise nvml_errors.invalid_value(gpu, call.__name__, 0, "any profile")
    return tuple(sorted(sizes, key=lambda profile: sizes[profile], reverse=True))


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


def _read_device(gpu: str, compute: object) -> tuple[int, str]:
    """Return the id of a compute instance, and its device's UUID. Raises DeviceFault.

    The header calls the device in NVML's info the parent; NVIDIA's DRA driver takes it for the MIG
    device.
    """
    info = nvml_errors.call_nvml(gpu, pynvml.nvmlComputeInstanceGetInfo, compute)
    return int(info.id), str(nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetUUID, info.device))


def _read_back(
    ref: mig.InstanceRef, handle: object, created: object, compute: object
) -> mig.Instance:
    """Re-read the created instance. Raises DeviceFault if it is not as requested.

    A driver whose compute instances do not name their devices has these searched.
    """
    info = nvml_errors.call_nvml(ref.gpu, pynvml.nvmlGpuInstanceGetInfo, created)
    number, placement = int(info.id), mig_layout.placement_of(info)
    compute_instance, uuid = _read_device(ref.gpu, compute)
    instances: Iterable[mig.Instance]
    if uuid.startswith("MIG-"):
        uuid = ids.MigUuid(uuid)
        instances = (mig.Instance(number, int(info.profileId), placement, compute_instance, uuid),)
    else:
        instances = mig_layout.read_instances(ref.gpu, handle, (ref.profile_id,))
    for instance in instances:
        if instance.gpu_instance == number and ref.matches(instance) and instance.uuid:
            return instance
    call = "reading a new instance back"
    raise nvml_errors.invalid_value(ref.gpu, call, number, f"an instance with its device at {ref}")


def _matching_instances(ref: mig.InstanceRef, handle: object) -> Iterator[object]:
    """Yield the GPU instances at a placement that may be ours."""
    uuids: dict[int, set[ids.MigUuid]] = {}
    for device in mig_layout.read_devices(ref.gpu, handle):
        uuids.setdefault(device.gpu_instance, set()).add(device.uuid)
    for instance in mig_layout.instance_handles(ref.gpu, handle, ref.profile_id):
        info = mig_layout.instance_info(ref.gpu, instance)
        if info is None:
            continue
        if mig_layout.placement_of(info) != ref.placement:
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
