"""The acts of MIG, over the simulator's machine model and without its C library."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from driver import errors, ids
from driver.devices import mig
from driver.runtime.files import failpoints
from simulator import client, codes, geometry, library, mig_calls

T = TypeVar("T")
_STEP_S = 0.25
_WORDS = {19: "MIG mode stays: in use", 16: "MIG mode stays: would have to be reset"}
_GONE = {codes.Return.NOT_FOUND, codes.Return.NOT_SUPPORTED, codes.Return.GPU_IS_LOST}


class FakePartitions:
    """Implements `ports.Partitions`; patience costs no time. `changed` is told of every change."""

    def __init__(
        self,
        ask: library.Library,
        changed: Callable[[], None] = lambda: None,
        watch: failpoints.Observer = failpoints.NO_OBSERVER,
    ) -> None:
        self._ask = ask
        self._changed = changed
        self._watch = watch

    def enable(self, gpu: ids.GpuUuid, patience_s: float = 0.0) -> bool:
        return patiently(lambda: self._set(gpu, enabled=True), patience_s)

    def disable(self, gpu: ids.GpuUuid, patience_s: float) -> bool:
        def once() -> bool:
            left = list(self._instances(gpu)) if self._mode(gpu)[0] else []
            return not left and self._set(gpu, enabled=False)

        return patiently(once, patience_s)

    def create(self, instance_ref: mig.InstanceRef) -> mig.Instance:
        answer, placement = self._ask, instance_ref.placement
        handle = self._handle(instance_ref.gpu)
        created_value = answer.device_create_gpu_instance_with_placement
        try:
            created = created_value(
                handle, instance_ref.profile_id, placement.start, placement.size
            )
        except codes.NvmlError as e:
            raise _unchanged(instance_ref.gpu, e) from e
        self._point("GPU instance made")
        try:
            spanning = max(
                self._compute_profiles(created),
                key=lambda profile_info: profile_info.multiprocessor_count,
            )
            compute = answer.gpu_instance_create_compute_instance(created, spanning.id)
        except codes.NvmlError as e:
            self._unmake(instance_ref.gpu, created)
            raise _unchanged(instance_ref.gpu, e) from e
        self._point("compute instance made")
        info = answer.compute_instance_get_info(compute)
        uuid = ids.MigUuid(answer.device_get_uuid(info.device))
        number = answer.gpu_instance_get_info(created).id
        return mig.Instance(number, instance_ref.profile_id, placement, info.id, uuid)

    def destroy(
        self,
        instance_ref: mig.InstanceRef,
        patience_s: float,
        created: mig.Instance | None = None,
    ) -> None:
        del created  # it is searched

        def once() -> None:
            for handle in list(self._at(instance_ref)):
                self._unmake(instance_ref.gpu, handle)

        patiently(once, patience_s)

    def _handle(self, gpu: str) -> client.Handle:
        return refused(gpu, self._ask.device_get_handle_by_uuid, gpu)

    def _mode(self, gpu: str) -> tuple[bool, bool]:
        return refused(gpu, self._ask.device_get_mig_mode, self._handle(gpu))

    def _set(self, gpu: str, *, enabled: bool) -> bool:
        previous, pending = self._mode(gpu)
        if previous == pending == enabled:
            return False
        handle = self._handle(gpu)
        status = self._ask.device_set_mig_mode(handle, enabled)
        self._point("MIG mode asked for")
        if status == codes.Return.SUCCESS:
            return previous != enabled
        self._ask.device_set_mig_mode(handle, previous)
        raise errors.Unchanged(gpu, "nvmlDeviceSetMigMode", status, _WORDS[status])

    def _at(self, instance_ref: mig.InstanceRef) -> Iterator[client.Handle]:
        try:
            handles = list(self._instances(instance_ref.gpu))
        except errors.DeviceFault as fault:
            if fault.code in _GONE:
                return
            raise
        for handle in handles:
            info = self._ask.gpu_instance_get_info(handle)
            placement = mig.Placement(info.placement.start, info.placement.size)
            if (info.profile_id, placement) != (instance_ref.profile_id, instance_ref.placement):
                continue
            uuids = {
                self._ask.device_get_uuid(self._ask.compute_instance_get_info(handle).device)
                for handle in self._compute(handle)
            }
            if instance_ref.uuid is None or not uuids or instance_ref.uuid in uuids:
                yield handle

    def _instances(self, gpu: str) -> Iterator[client.Handle]:
        handle = self._handle(gpu)
        for enum in range(geometry.PROFILE_COUNT):
            try:
                info = self._ask.device_get_gpu_instance_profile_info(handle, enum)
            except codes.NvmlError:
                continue
            yield from refused(gpu, self._ask.device_get_gpu_instances, handle, info.id)

    def _compute(self, handle: client.Handle) -> Iterator[client.Handle]:
        for profile in self._compute_profiles(handle):
            yield from self._ask.gpu_instance_get_compute_instances(handle, profile.id)

    def _compute_profiles(
        self, handle: client.Handle
    ) -> Iterator[mig_calls.ComputeInstanceProfileInfo]:
        for enum in geometry.COMPUTE_SLICES:
            try:
                yield self._ask.gpu_instance_get_compute_instance_profile_info(handle, enum, 0)
            except codes.NvmlError:
                continue

    def _unmake(self, gpu: str, handle: client.Handle) -> None:
        for compute in list(self._compute(handle)):
            refused(gpu, self._ask.compute_instance_destroy, compute)
            self._point("compute instance destroyed")
        refused(gpu, self._ask.gpu_instance_destroy, handle)
        self._point("GPU instance destroyed")

    def _point(self, name: str) -> None:
        self._changed()
        self._watch.on_point(name)


def patiently(act: Callable[[], T], patience_s: float) -> T:
    """Try as often as would be tried in that time."""
    for _ in range(int(patience_s / _STEP_S)):
        try:
            return act()
        except errors.DeviceFault as fault:
            if fault.code != codes.Return.IN_USE:
                raise
    return act()


def refused(gpu: str, call: Callable[..., T], *arguments: object) -> T:
    """A call whose refusal is a DeviceFault."""
    try:
        return call(*arguments)
    except codes.NvmlError as e:
        raise errors.DeviceFault(gpu, "a call", e.code, str(e)) from e


def _unchanged(gpu: str, e: codes.NvmlError) -> errors.Unchanged:
    return errors.Unchanged(gpu, "making an instance", e.code, str(e))
