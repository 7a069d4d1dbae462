"""What NVML says of the GPUs' health: its events, and polls. Errors leave as DeviceFault.

One event set watches all GPUs. Whole GPUs only can be registered; an event says by its ids whether
it is an instance's. That a GPU is lost ends every wait without saying which it is, again and again
until the set no longer holds it (NV-8).
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
from driver.kubeletplugin import health_watch
from driver.kubeletplugin.nvml import calls, door

WHOLE_GPU = 0xFFFFFFFF
"""Both ids of an event that is no instance's (nvml.h, nvmlEventData_t)."""
_WANTED = (
    pynvml.nvmlEventTypeXidCriticalError
    | pynvml.nvmlEventTypeDoubleBitEccError
    | pynvml.nvmlEventTypeDramRetirementEvent
    | pynvml.nvmlEventTypeDramRetirementFailure
    | pynvml.nvmlEventTypeFatalPoisonError
    | pynvml.nvmlEventTypeGpuUnavailableError
    | pynvml.nvmlEventTypeGpuRecoveryAction
    | pynvml.nvmlEventMigConfigChange
)
"""Xids are judged; each of the others is a reason to look at its GPU."""
_PENDING_MOST = 256
_EVENTS = "events"
"""The lane of event sets."""
_WHICH = "which"
PATIENCE_S = 0.3
"""Longest wait for one GPU's poll: the others' events and polls wait meanwhile."""
Event = health.XidEvent | health_watch.Stirred
Told = TypeVar("Told")


class NvmlHealth:
    """Implements `health_watch.Watcher` over an initialised library. Used by one thread.

    A poll that is not answered within `patience_s` goes on, and is answered by a later one.
    """

    def __init__(self, session: door.Door, patience_s: float = PATIENCE_S) -> None:
        self._session = session
        self._patience_s = patience_s
        self._number = 0
        self._set: object | None = None
        self._uuids: dict[int, ids.GpuUuid] = {}
        self._addresses: dict[int, ids.GpuUuid] = {}
        self._watched: set[ids.GpuUuid] = set()
        self._pending: collections.deque[Event] = collections.deque()
        self._refused: dict[ids.GpuUuid, str] = {}
        session.before_end(self._let_go)

    @property
    def watching(self) -> bool:
        """Whether there is an event set of the library's present start, with a GPU in it."""
        return bool(self._watched) and self._number == self._session.number

    def known(self) -> tuple[ids.GpuUuid, ...]:
        """The GPUs that are the node's as far as it was ever read."""
        return self._session.known()

    def gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Every GPU that can be read, and those watched that do not answer now; others left out.

        Raises DeviceFault.
        """
        with self._following():
            count = self._session.of_library(lambda: calls.ask("", pynvml.nvmlDeviceGetCount))
            for index in range(count):
                with contextlib.suppress(errors.DeviceFault):  # told by its answer
                    act = functools.partial(self._identified, index)
                    self._session.lanes.begin(
                        self._session.lane_at(index, self._number), _WHICH, act
                    )
            present: list[ids.GpuUuid] = []
            for index in range(count):
                uuid = self._identity(index)
                if uuid is not None:
                    present.append(uuid)
            return tuple(present)

    def watch(self, gpus: Iterable[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        """Have exactly these in the event set; how it went for those that were not yet in it.

        Raises DeviceFault. Nothing takes a GPU out of a set: then there is a new set before the old
        one is emptied, and an event of that moment may come twice.
        """
        with self._following():
            wanted, old = frozenset(gpus), None
            if not wanted.issuperset(self._watched):
                old, self._set = self._set, None
                self._watched.clear()
            done = self._fill(wanted)
            if old is not None:
                self._empty(old)
            return done

    def wait(self, timeout_s: float) -> Event | None:
        """The next event; None after `timeout_s`, or when the library was started anew meanwhile.

        Raises DeviceFault; GPU_IS_LOST says nothing of which GPU it is.
        """
        with self._following():
            if self._pending:
                return self._pending.popleft()
            return None if self._set is None else self._wait(self._set, timeout_s)

    def signs(self, gpu: ids.GpuUuid) -> health.Signs:
        """What a poll of the GPU says, unreachable GPUs included. Raises DeviceFault."""
        act = functools.partial(_polled, self._session, gpu)
        return self._told(gpu, lambda: self._session.lanes.call(gpu, act))

    def poll(self, gpu: ids.GpuUuid) -> health.Signs | None:
        """As `signs`; None: it has not answered yet, and is to be asked again."""
        act, lanes = functools.partial(_polled, self._session, gpu), self._session.lanes
        return self._told(gpu, lambda: lanes.ask(gpu, "signs", act, self._patience_s))

    def _told(self, gpu: ids.GpuUuid, ask: Callable[[], Told]) -> Told | health.Signs:
        with self._following():
            try:
                return ask()
            except errors.Hung as hung:
                return health.Signs(hung=hung.call)
            except errors.DeviceFault as fault:
                if not _is_of_one(fault):
                    raise
                self._session.forget(gpu)
                return health.Signs(problem=f"{fault.text}, NVML error {fault.code}")

    def close(self) -> None:
        """Free the event set; the next `watch` makes one."""
        if self._set is None or self._number != self._session.number:
            self._forget()
            return
        self._free()

    @contextlib.contextmanager
    def _following(self) -> Iterator[None]:
        """Forget what belongs to an earlier start of the library; drop one that is gone."""
        try:
            if not self._number or self._number != self._session.number:
                self._follow(self._session.of_library(lambda: self._session.number))
            yield
        except errors.DeviceFault as fault:
            if fault.code in calls.LIBRARY_GONE:
                self._session.drop(self._number)
            raise

    def _follow(self, number: int) -> None:
        if number != self._number:
            left, before = self._set, self._number
            self._forget()
            self._number = number
            if left is not None and self._session.is_open(before):
                self._release(left)  # a call hangs in that start, which goes on beside this one

    def _identified(self, index: int) -> ids.GpuUuid:
        """The UUID of the GPU at an index, in its lane."""
        where = f"GPU at index {index}"
        with self._session.use() as number:
            handle = calls.ask(where, pynvml.nvmlDeviceGetHandleByIndex, index)
            uuid = ids.GpuUuid(str(calls.ask(where, pynvml.nvmlDeviceGetUUID, handle)))
            self._session.keep(uuid, number, handle)
            self._session.stands_at(index, number, uuid)
            return uuid

    def _identity(self, index: int) -> ids.GpuUuid | None:
        """The GPU at an index, if it answers, or is watched and does not."""
        before, lane = self._uuids.get(index), self._session.lane_at(index, self._number)
        try:
            uuid: ids.GpuUuid | None = self._session.lanes.ask(
                lane, _WHICH, functools.partial(self._identified, index), self._patience_s
            )
        except errors.Hung:
            uuid = None
        except errors.DeviceFault as fault:
            if not _is_of_one(fault):
                raise
            return None
        if uuid is not None:
            self._uuids[index] = uuid
            return uuid
        return before if before in self._watched else None

    def _wait(self, made: object, timeout_s: float) -> Event | None:
        call, limit_ms = pynvml.nvmlEventSetWait_v2, int(timeout_s * 1000)
        try:
            data = self._on_events(lambda: calls.ask("", call, made, limit_ms))
        except errors.DeviceFault as fault:
            if fault.code == pynvml.NVML_ERROR_TIMEOUT:
                return None
            raise
        gpu = self._addresses.get(_address(data.device))
        if gpu is None or data.eventType != pynvml.nvmlEventTypeXidCriticalError:
            return health_watch.Stirred(gpu)
        return health.XidEvent(gpu, int(data.eventData), _instance(data))

    def _on_events(self, act: Callable[[], Any]) -> Any:  # noqa: ANN401 - as pynvml
        """Have an act done on event sets, apart from what else concerns no GPU."""

        def visit() -> object:
            with self._session.use() as number:
                self._require(number)
                return act()

        return self._session.lanes.call(_EVENTS, visit)

    def _require(self, number: int) -> None:
        """Keep a set out of another start than its own. Raises DeviceFault, as of a timeout."""
        if number != self._number:
            code = pynvml.NVML_ERROR_TIMEOUT
            raise errors.DeviceFault("", "using an event set", code, "the library was started anew")

    def _fill(self, wanted: frozenset[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        """Register who is not yet, in a new set if there is none."""
        fresh = self._set is None
        if fresh:
            self._set = self._on_events(lambda: calls.ask("", pynvml.nvmlEventSetCreate))
        done: list[health.Watched] = []
        for gpu in sorted(wanted - self._watched):
            problem = self._refused.get(gpu)
            try:
                if problem is None:
                    self._register(gpu)
            except errors.Hung as hung:
                problem = f"{hung.call} hangs"
            except errors.DeviceFault as fault:
                if not _is_of_one(fault):
                    raise
                problem = f"{fault.text}, NVML error {fault.code}"
                if fault.code == pynvml.NVML_ERROR_UNKNOWN:  # such a set is of no use any more
                    self._free()
                    self._refused |= {gpu: problem} if fresh else {}
                    return self._fill(wanted)
            done.append(health.Watched(gpu, problem or ""))
        return tuple(done)

    def _empty(self, old: object) -> None:
        """Take what waits in a set that is to go, and free it."""
        with contextlib.suppress(errors.DeviceFault):
            while len(self._pending) < _PENDING_MOST and (event := self._wait(old, 0.0)):
                self._pending.append(event)
        self._release(old)

    def _register(self, gpu: ids.GpuUuid) -> None:
        session, made = self._session, self._set

        def visit() -> object:
            with session.use() as number:
                self._require(number)
                return _registered(gpu, session.handle(gpu, number), made)

        handle = session.lanes.call(gpu, visit)
        self._addresses[_address(handle)] = gpu
        self._watched.add(gpu)

    def _free(self) -> None:
        made, self._set = self._set, None
        self._watched.clear()
        if made is not None:
            self._release(made)

    def _release(self, made: object) -> None:
        with contextlib.suppress(errors.DeviceFault):
            self._on_events(lambda: calls.ask("", pynvml.nvmlEventSetFree, made))

    def _let_go(self, number: int) -> None:
        """A start of the library ends: its event set goes first. Nobody is inside."""
        made = self._set
        if made is not None and number == self._number:
            self._set = None
            self._watched.clear()
            with contextlib.suppress(errors.DeviceFault):
                calls.ask("", pynvml.nvmlEventSetFree, made)

    def _forget(self) -> None:
        self._set = None
        for kept in (self._uuids, self._addresses, self._watched, self._pending, self._refused):
            kept.clear()


class _OneGpuFault(errors.DeviceFault):
    """A fault that is that of one GPU, and not of the library."""


def _is_of_one(fault: errors.DeviceFault) -> bool:
    """Whether a fault is one GPU's, and not the library's."""
    return bool(fault.device) and fault.code not in calls.LIBRARY_GONE


def _polled(session: door.Door, gpu: ids.GpuUuid) -> health.Signs:
    """Poll the GPU, in its lane. Raises DeviceFault."""
    with session.use() as number:
        return _signs(gpu, session.handle(gpu, number))


def _registered(gpu: ids.GpuUuid, handle: object, made: object) -> object:
    """Ask for the GPU's events in that set; its handle. Raises DeviceFault."""
    supported = _of_one(gpu, pynvml.nvmlDeviceGetSupportedEventTypes, handle)
    if not supported & pynvml.nvmlEventTypeXidCriticalError:
        code = pynvml.NVML_ERROR_NOT_SUPPORTED
        raise _OneGpuFault(gpu, "nvmlDeviceGetSupportedEventTypes", code, "no Xids")
    _of_one(gpu, pynvml.nvmlDeviceRegisterEvents, handle, _WANTED & supported, made)
    return handle


def _signs(gpu: ids.GpuUuid, handle: object) -> health.Signs:
    _reach(gpu, handle)
    rows = _told(gpu, pynvml.nvmlDeviceGetRemappedRows, handle)
    if rows is None:
        pages = _told(gpu, pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
        rows = (0, 0, pages, 0)
    sram = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    counted = _told(gpu, pynvml.nvmlDeviceGetSramEccErrorStatus, handle, ctypes.byref(sram))
    energy = _told(gpu, pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
    return health.Signs(
        recovery=_recovery(gpu, handle),
        repair_pending=bool(rows[2]),
        repair_failed=bool(rows[3]),
        sram_exceeded=counted is not None and bool(sram.bThresholdExceeded),
        unrepairable=bool(_told(gpu, unrepairable_memory, handle)),
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


def _reach(gpu: ids.GpuUuid, handle: object) -> None:
    """Ask what every GPU answers, except that those without memory of their own say so.

    A GPU that fell off the bus may fail every call with UNKNOWN, which `_told` makes nothing of.
    """
    try:
        _of_one(gpu, pynvml.nvmlDeviceGetMemoryInfo, handle)
    except _OneGpuFault as fault:
        if fault.code != pynvml.NVML_ERROR_NOT_SUPPORTED:
            raise


def _recovery(gpu: ids.GpuUuid, handle: object) -> int | None:
    field = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    answers = _told(gpu, pynvml.nvmlDeviceGetFieldValues, handle, [field])
    code = pynvml.NVML_ERROR_NOT_SUPPORTED if answers is None else answers[0].nvmlReturn
    if code == pynvml.NVML_ERROR_GPU_IS_LOST:
        raise _OneGpuFault(gpu, "nvmlDeviceGetFieldValues", code, "GPU is lost")
    return int(answers[0].value.uiVal) if code == pynvml.NVML_SUCCESS else None


def _instance(data: Any) -> health.Instance | None:  # noqa: ANN401 - pynvml's structures have no types
    if data.gpuInstanceId == WHOLE_GPU:
        return None
    compute = None if data.computeInstanceId == WHOLE_GPU else int(data.computeInstanceId)
    return health.Instance(int(data.gpuInstanceId), compute)


def _address(handle: Any) -> int:  # noqa: ANN401 - pynvml's pointers have no types
    """Handles compare by identity; the same GPU's point to the same place."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _told(gpu: ids.GpuUuid, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """As `_of_one`; None unless it was answered or the GPU is lost.

    Each of these exists for some GPUs and drivers only, and what one of them fails on otherwise
    must not keep the others from being told.
    """
    try:
        return _of_one(gpu, call, *arguments)
    except _OneGpuFault as fault:
        if fault.code == pynvml.NVML_ERROR_GPU_IS_LOST:
            raise
        return None


def _of_one(gpu: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """As `calls.ask`; what fails for this GPU only is a _OneGpuFault."""
    try:
        return calls.ask(gpu, call, *arguments)
    except errors.Hung:
        raise
    except errors.DeviceFault as fault:
        if fault.code in calls.LIBRARY_GONE:
            raise
        raise _OneGpuFault(fault.device, fault.call, fault.code, fault.text) from fault
