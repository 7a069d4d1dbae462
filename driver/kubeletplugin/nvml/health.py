"""GPU health from NVML: events and polls. Errors are raised as DeviceFault.

One event set watches all GPUs. Only whole GPUs can be registered; an event's ids tell whether it is
an instance's. A lost GPU ends every wait without naming itself, repeatedly, until it is removed
from the set (NV-8).
"""

import collections
import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pynvml

from driver import errors, ids
from driver.devices import health
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls

WHOLE_GPU = 0xFFFFFFFF
"""Both ids of an event that is no instance's (nvml.h, nvmlEventData_t)."""
_EVENT_TYPES = (
    pynvml.nvmlEventTypeXidCriticalError
    | pynvml.nvmlEventTypeDoubleBitEccError
    | pynvml.nvmlEventTypeDramRetirementEvent
    | pynvml.nvmlEventTypeDramRetirementFailure
    | pynvml.nvmlEventTypeFatalPoisonError
    | pynvml.nvmlEventTypeGpuUnavailableError
    | pynvml.nvmlEventTypeGpuRecoveryAction
    | pynvml.nvmlEventMigConfigChange
)
"""Xids are classified; any other event but of MIG is a reason to poll its GPU."""
_PENDING_MOST = 256
_EVENTS = "events"
"""The lane of event sets."""
_WHICH = "which"
PATIENCE_S = 0.3
"""Longest wait for one GPU's poll: the others' events and polls wait meanwhile."""
Event = health.XidEvent | ports.GpuChanged | ports.MigChanged
Result = TypeVar("Result")


class NvmlHealth:
    """Implements `ports.Watcher` over an initialised library. Used by one thread.

    A poll that is not answered within `patience_s` continues, and a later poll returns its result.
    """

    def __init__(self, session: gpu_calls.GpuSession, patience_s: float = PATIENCE_S) -> None:
        self._session = session
        self._patience_s = patience_s
        self._number = 0
        self._set: object | None = None
        self._uuids: dict[int, ids.GpuUuid] = {}
        self._addresses: dict[int, ids.GpuUuid] = {}
        self._watched: set[ids.GpuUuid] = set()
        self._pending: collections.deque[Event] = collections.deque()
        self._refused: dict[ids.GpuUuid, str] = {}
        session.on_end(self._free_at_end)

    @property
    def watching(self) -> bool:
        """Return whether the library's current start has an event set with a GPU in it."""
        return bool(self._watched) and self._number == self._session.number

    def known_gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return the node's GPUs, as last read."""
        return self._session.gpus()

    def readable_gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return the GPUs that can be read, and watched GPUs that do not answer now.

        Raises DeviceFault.
        """
        with self._current_start():
            count = self._session.run_library(
                lambda: nvml_errors.call_nvml("", pynvml.nvmlDeviceGetCount)
            )
            for index in range(count):
                with contextlib.suppress(errors.DeviceFault):  # reported by its poll
                    act = functools.partial(self._read_uuid, index)
                    self._session.lanes.submit(
                        self._session.index_lane(index, self._number), _WHICH, act
                    )
            present: list[ids.GpuUuid] = []
            for index in range(count):
                uuid = self._gpu_at(index)
                if uuid is not None:
                    present.append(uuid)
            return tuple(present)

    def watch(self, gpus: Iterable[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        """Make the event set hold exactly these GPUs; return the result for those added.

        Raises DeviceFault. NVML cannot remove a GPU from a set: a new set is made before the old
        one is emptied, and an event of that moment may be reported twice.
        """
        with self._current_start():
            desired, old = frozenset(gpus), None
            if not desired.issuperset(self._watched):
                old, self._set = self._set, None
                self._watched.clear()
            done = self._register_all(desired)
            if old is not None:
                self._drain(old)
            return done

    def wait(self, timeout_s: float) -> Event | None:
        """Return the next event; None after `timeout_s`, or if the library was started anew.

        Raises DeviceFault; GPU_IS_LOST does not tell which GPU it is.
        """
        with self._current_start():
            if self._pending:
                return self._pending.popleft()
            return None if self._set is None else self._wait_event(self._set, timeout_s)

    def probe(self, gpu: ids.GpuUuid) -> health.PollResult:
        """Poll the GPU, unreachable GPUs included. Raises DeviceFault."""
        act = functools.partial(_probe, self._session, gpu)
        return self._poll_with(gpu, lambda: self._session.lanes.call(gpu, act))

    def poll(self, gpu: ids.GpuUuid) -> health.PollResult | None:
        """Same as `probe`; returns None if it has not answered yet: poll again."""
        act, lanes = functools.partial(_probe, self._session, gpu), self._session.lanes
        return self._poll_with(gpu, lambda: lanes.poll(gpu, "signs", act, self._patience_s))

    def _poll_with(
        self, gpu: ids.GpuUuid, poll: Callable[[], Result]
    ) -> Result | health.PollResult:
        with self._current_start():
            try:
                return poll()
            except errors.Hung as hung:
                return health.PollResult(hung=hung.call)
            except errors.DeviceFault as fault:
                if not _is_gpu_fault(fault):
                    raise
                self._session.drop_handle(gpu)
                return health.PollResult(problem=f"{fault.text}, NVML error {fault.code}")

    def close(self) -> None:
        """Free the event set; the next `watch` creates one."""
        if self._set is None or self._number != self._session.number:
            self._reset()
            return
        self._free_set()

    @contextlib.contextmanager
    def _current_start(self) -> Iterator[None]:
        """Drop the state of an earlier start of the library; drop a start that is gone."""
        try:
            if not self._number or self._number != self._session.number:
                self._switch_start(self._session.run_library(lambda: self._session.number))
            yield
        except errors.DeviceFault as fault:
            if fault.code in nvml_errors.LIBRARY_GONE:
                self._session.drop(self._number)
            raise

    def _switch_start(self, number: int) -> None:
        if number != self._number:
            old_set, previous = self._set, self._number
            self._reset()
            self._number = number
            if old_set is not None and self._session.is_open(previous):
                self._release_set(
                    old_set
                )  # a call hangs in that start, which continues beside this one

    def _read_uuid(self, index: int) -> ids.GpuUuid:
        """Return the UUID of the GPU at an index; runs in its lane."""
        label = f"GPU at index {index}"
        with self._session.use() as number:
            handle = nvml_errors.call_nvml(label, pynvml.nvmlDeviceGetHandleByIndex, index)
            uuid = ids.GpuUuid(str(nvml_errors.call_nvml(label, pynvml.nvmlDeviceGetUUID, handle)))
            self._session.cache_handle(uuid, number, handle)
            self._session.record_index(index, number, uuid)
            return uuid

    def _gpu_at(self, index: int) -> ids.GpuUuid | None:
        """Return the GPU at an index if it answers, or is watched and does not."""
        previous, lane = self._uuids.get(index), self._session.index_lane(index, self._number)
        try:
            uuid: ids.GpuUuid | None = self._session.lanes.poll(
                lane, _WHICH, functools.partial(self._read_uuid, index), self._patience_s
            )
        except errors.Hung:
            uuid = None
        except errors.DeviceFault as fault:
            if not _is_gpu_fault(fault):
                raise
            return None
        if uuid is not None:
            self._uuids[index] = uuid
            return uuid
        return previous if previous in self._watched else None

    def _wait_event(self, event_set: object, timeout_s: float) -> Event | None:
        call, limit_ms = pynvml.nvmlEventSetWait_v2, int(timeout_s * 1000)
        try:
            data = self._run_on_events(lambda: nvml_errors.call_nvml("", call, event_set, limit_ms))
        except errors.DeviceFault as fault:
            if fault.code == pynvml.NVML_ERROR_TIMEOUT:
                return None
            raise
        gpu = self._addresses.get(_handle_address(data.device))
        if gpu is not None and data.eventType == pynvml.nvmlEventMigConfigChange:
            return ports.MigChanged(gpu)
        if gpu is None or data.eventType != pynvml.nvmlEventTypeXidCriticalError:
            return ports.GpuChanged(gpu)
        return health.XidEvent(gpu, int(data.eventData), _instance(data))

    def _run_on_events(self, act: Callable[[], Any]) -> Any:  # noqa: ANN401 - as pynvml
        """Run `act` on event sets, in a lane of their own."""

        def visit() -> object:
            with self._session.use() as number:
                self._require_start(number)
                return act()

        return self._session.lanes.call(_EVENTS, visit)

    def _require_start(self, number: int) -> None:
        """Refuse a set that belongs to another start. Raises DeviceFault, as for a timeout."""
        if number != self._number:
            code = pynvml.NVML_ERROR_TIMEOUT
            raise errors.DeviceFault("", "using an event set", code, "the library was started anew")

    def _register_all(self, desired: frozenset[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        """Register the GPUs that are not in the set; create the set if there is none."""
        fresh = self._set is None
        if fresh:
            self._set = self._run_on_events(
                lambda: nvml_errors.call_nvml("", pynvml.nvmlEventSetCreate)
            )
        done: list[health.Watched] = []
        for gpu in sorted(desired - self._watched):
            problem = self._refused.get(gpu)
            try:
                if problem is None:
                    self._register(gpu)
            except errors.Hung as hung:
                problem = f"{hung.call} hangs"
            except errors.DeviceFault as fault:
                if not _is_gpu_fault(fault):
                    raise
                problem = f"{fault.text}, NVML error {fault.code}"
                if fault.code == pynvml.NVML_ERROR_UNKNOWN:  # such a set is of no use any more
                    self._free_set()
                    self._refused |= {gpu: problem} if fresh else {}
                    return self._register_all(desired)
            done.append(health.Watched(gpu, problem or ""))
        return tuple(done)

    def _drain(self, old: object) -> None:
        """Queue the pending events of a set to be discarded, and free it."""
        with contextlib.suppress(errors.DeviceFault):
            while len(self._pending) < _PENDING_MOST and (event := self._wait_event(old, 0.0)):
                self._pending.append(event)
        self._release_set(old)

    def _register(self, gpu: ids.GpuUuid) -> None:
        session, event_set = self._session, self._set

        def visit() -> object:
            with session.use() as number:
                self._require_start(number)
                return _register_events(gpu, session.handle(gpu, number), event_set)

        handle = session.lanes.call(gpu, visit)
        self._addresses[_handle_address(handle)] = gpu
        self._watched.add(gpu)

    def _free_set(self) -> None:
        event_set, self._set = self._set, None
        self._watched.clear()
        if event_set is not None:
            self._release_set(event_set)

    def _release_set(self, event_set: object) -> None:
        with contextlib.suppress(errors.DeviceFault):
            self._run_on_events(
                lambda: nvml_errors.call_nvml("", pynvml.nvmlEventSetFree, event_set)
            )

    def _free_at_end(self, number: int) -> None:
        """Free the event set before its start of the library ends. No call is in flight."""
        event_set = self._set
        if event_set is not None and number == self._number:
            self._set = None
            self._watched.clear()
            with contextlib.suppress(errors.DeviceFault):
                nvml_errors.call_nvml("", pynvml.nvmlEventSetFree, event_set)

    def _reset(self) -> None:
        self._set = None
        for cache in (self._uuids, self._addresses, self._watched, self._pending, self._refused):
            cache.clear()


class _OneGpuFault(errors.DeviceFault):
    """A fault of one GPU, not of the library."""


def _is_gpu_fault(fault: errors.DeviceFault) -> bool:
    """Return whether a fault is one GPU's, and not the library's."""
    return bool(fault.device) and fault.code not in nvml_errors.LIBRARY_GONE


def _probe(session: gpu_calls.GpuSession, gpu: ids.GpuUuid) -> health.PollResult:
    """Poll the GPU, in its lane. Raises DeviceFault."""
    with session.use() as number:
        return _read_poll(gpu, session.handle(gpu, number))


def _register_events(gpu: ids.GpuUuid, handle: object, event_set: object) -> object:
    """Register the GPU's events in the set; return its handle. Raises DeviceFault."""
    supported = _query(gpu, pynvml.nvmlDeviceGetSupportedEventTypes, handle)
    if not supported & pynvml.nvmlEventTypeXidCriticalError:
        code = pynvml.NVML_ERROR_NOT_SUPPORTED
        raise _OneGpuFault(gpu, "nvmlDeviceGetSupportedEventTypes", code, "no Xids")
    _query(gpu, pynvml.nvmlDeviceRegisterEvents, handle, _EVENT_TYPES & supported, event_set)
    return handle


def _read_poll(gpu: ids.GpuUuid, handle: object) -> health.PollResult:
    _check_reachable(gpu, handle)
    rows = _query_optional(gpu, pynvml.nvmlDeviceGetRemappedRows, handle)
    if rows is None:
        pages = _query_optional(gpu, pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
        rows = (0, 0, pages, 0)
    sram = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    supported = _query_optional(
        gpu, pynvml.nvmlDeviceGetSramEccErrorStatus, handle, ctypes.byref(sram)
    )
    energy = _query_optional(gpu, pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
    return health.PollResult(
        recovery=_recovery_action(gpu, handle),
        repair_pending=bool(rows[2]),
        repair_failed=bool(rows[3]),
        sram_exceeded=supported is not None and bool(sram.bThresholdExceeded),
        unrepairable=bool(_query_optional(gpu, unrepairable_memory, handle)),
        energy_mj=None if energy is None else int(energy),
    )


class _UnrepairableMemory(ctypes.Structure):
    """nvmlUnrepairableMemoryStatus_v1_t of nvml.h; pynvml's has a version before the flag."""

    _fields_ = (("flag", ctypes.c_uint),)


def unrepairable_memory(handle: object) -> bool:
    """Call nvmlDeviceGetUnrepairableMemoryFlag_v1. Raises NVMLError."""
    status = _UnrepairableMemory()
    call = pynvml._nvmlGetFunctionPointer(  # noqa: SLF001 - pynvml has the wrong structure
        "nvmlDeviceGetUnrepairableMemoryFlag_v1"
    )
    pynvml._nvmlCheckReturn(call(handle, ctypes.byref(status)))  # noqa: SLF001 - as above
    return bool(status.flag)


def _check_reachable(gpu: ids.GpuUuid, handle: object) -> None:
    """Query what every GPU answers; GPUs without memory of their own report NOT_SUPPORTED.

    A GPU that fell off the bus may fail every call with UNKNOWN, which `_query_optional` ignores.
    """
    try:
        _query(gpu, pynvml.nvmlDeviceGetMemoryInfo, handle)
    except _OneGpuFault as fault:
        if fault.code != pynvml.NVML_ERROR_NOT_SUPPORTED:
            raise


def _recovery_action(gpu: ids.GpuUuid, handle: object) -> int | None:
    field = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    values = _query_optional(gpu, pynvml.nvmlDeviceGetFieldValues, handle, [field])
    code = pynvml.NVML_ERROR_NOT_SUPPORTED if values is None else values[0].nvmlReturn
    if code == pynvml.NVML_ERROR_GPU_IS_LOST:
        raise _OneGpuFault(gpu, "nvmlDeviceGetFieldValues", code, "GPU is lost")
    return int(values[0].value.uiVal) if code == pynvml.NVML_SUCCESS else None


def _instance(data: Any) -> health.Instance | None:  # noqa: ANN401 - pynvml's structures have no types
    if data.gpuInstanceId == WHOLE_GPU:
        return None
    compute = None if data.computeInstanceId == WHOLE_GPU else int(data.computeInstanceId)
    return health.Instance(int(data.gpuInstanceId), compute)


def _handle_address(handle: Any) -> int:  # noqa: ANN401 - pynvml's pointers have no types
    """Return the address a handle points to: handles compare by identity."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _query_optional(gpu: ids.GpuUuid, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """Same as `_query`; returns None unless it was answered or the GPU is lost.

    Each of these calls exists for some GPUs and drivers only; a failure of one must not hide the
    others.
    """
    try:
        return _query(gpu, call, *arguments)
    except _OneGpuFault as fault:
        if fault.code == pynvml.NVML_ERROR_GPU_IS_LOST:
            raise
        return None


def _query(gpu: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """Same as `call_nvml`; raises _OneGpuFault for a failure of this GPU only."""
    try:
        return nvml_errors.call_nvml(gpu, call, *arguments)
    except errors.Hung:
        raise
    except errors.DeviceFault as fault:
        if fault.code in nvml_errors.LIBRARY_GONE:
            raise
        raise _OneGpuFault(fault.device, fault.call, fault.code, fault.text) from fault
