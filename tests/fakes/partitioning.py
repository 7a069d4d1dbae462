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

    def create(self, place: mig.InstanceRef) -> mig.Instance:
        ask, at = self._ask, place.placement
        handle = self._handle(place.gpu)
        create = ask.device_create_gpu_instance_with_placement
        try:
            made = create(handle, place.profile_id, at.start, at.size)
        except codes.NvmlError as e:
            raise _unchanged(place.gpu, e) from e
        self._point("GPU instance made")
        try:
            spanning = max(self._compute_profiles(made), key=lambda one: one.multiprocessor_count)
            compute = ask.gpu_instance_create_compute_instance(made, spanning.id)
        except codes.NvmlError as e:
            self._unmake(place.gpu, made)
            raise _unchanged(place.gpu, e) from e
        self._point("compute instance made")
        info = ask.compute_instance_get_info(compute)
        uuid = ids.MigUuid(ask.device_get_uuid(info.device))
        number = ask.gpu_instance_get_info(made).id
        return mig.Instance(number, place.profile_id, at, info.id, uuid)

    def destroy(self, place: mig.InstanceRef, patience_s: float) -> None:
        def once() -> None:
            for made in list(self._at(place)):
                self._unmake(place.gpu, made)

        patiently(once, patience_s)

    def _handle(self, gpu: str) -> client.Handle:
        return refused(gpu, self._ask.device_get_handle_by_uuid, gpu)

    def _mode(self, gpu: str) -> tuple[bool, bool]:
        return refused(gpu, self._ask.device_get_mig_mode, self._handle(gpu))

    def _set(self, gpu: str, *, enabled: bool) -> bool:
        before, pending = self._mode(gpu)
        if before == pending == enabled:
            return False
        handle = self._handle(gpu)
        status = self._ask.device_set_mig_mode(handle, enabled)
        self._point("MIG mode asked for")
        if status == codes.Return.SUCCESS:
            return before != enabled
        self._ask.device_set_mig_mode(handle, before)
        raise errors.Unchanged(gpu, "nvmlDeviceSetMigMode", status, _WORDS[status])

    def _at(self, place: mig.InstanceRef) -> Iterator[client.Handle]:
        try:
            found = list(self._instances(place.gpu))
        except errors.DeviceFault as fault:
            if fault.code in _GONE:
                return
            raise
        for made in found:
            info = self._ask.gpu_instance_get_info(made)
            at = mig.Placement(info.placement.start, info.placement.size)
            if (info.profile_id, at) != (place.profile_id, place.placement):
                continue
            uuids = {
                self._ask.device_get_uuid(self._ask.compute_instance_get_info(one).device)
                for one in self._compute(made)
            }
            if place.uuid is None or not uuids or place.uuid in uuids:
                yield made

    def _instances(self, gpu: str) -> Iterator[client.Handle]:
        handle = self._handle(gpu)
        for enum in range(geometry.PROFILE_COUNT):
            try:
                info = self._ask.device_get_gpu_instance_profile_info(handle, enum)
            except codes.NvmlError:
                continue
            yield from refused(gpu, self._ask.device_get_gpu_instances, handle, info.id)

    def _compute(self, made: client.Handle) -> Iterator[client.Handle]:
        for one in self._compute_profiles(made):
            yield from self._ask.gpu_instance_get_compute_instances(made, one.id)

    def _compute_profiles(
        self, made: client.Handle
    ) -> Iterator[mig_calls.ComputeInstanceProfileInfo]:
        for enum in geometry.COMPUTE_SLICES:
            try:
                yield self._ask.gpu_instance_get_compute_instance_profile_info(made, enum, 0)
            except codes.NvmlError:
                continue

    def _unmake(self, gpu: str, made: client.Handle) -> None:
        for compute in list(self._compute(made)):
            refused(gpu, self._ask.compute_instance_destroy, compute)
            self._point("compute instance destroyed")
        refused(gpu, self._ask.gpu_instance_destroy, made)
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
