"""Facts of NVML's behaviour that reading shows: times of calls, events, lists of processes."""

import contextlib
import dataclasses
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import pynvml

from driver import errors
from driver.devices import health
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import health as nvml_health
from driver.kubeletplugin.nvml.queries import processes as gpu_processes
from hack.hardware import clients, facts, machine

_ROUNDS, _READERS, _BESIDE = 20, 16, 4
_EVENT_S, _GIB = 20.0, 1 << 30
_RECOVERY = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_NAMES = (
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetPciInfo",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetComputeMode",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetRetiredPagesPendingStatus",
    "nvmlDeviceGetModuleId",
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetSupportedEventTypes",
)


def times(target: machine.Machine) -> Iterator[facts.Fact]:
    """Measure calls: the first, later ones, and one call of many threads at once; ms."""
    nvml = target.nvml()
    begun = time.perf_counter()
    with nvml.session.use():
        yield facts.Fact("time.init-ms", _ms(begun))
        uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        for name in _NAMES:
            call = getattr(pynvml, name)
            yield _timed(f"{name}", lambda call=call: call(handle), uuid)  # type: ignore[misc]
        yield _timed(
            "nvmlDeviceGetHandleByUUID", lambda: pynvml.nvmlDeviceGetHandleByUUID(uuid), uuid
        )
        with futures.ThreadPoolExecutor(_READERS) as pool:
            begun = time.perf_counter()
            for done in [
                pool.submit(pynvml.nvmlDeviceGetHandleByUUID, uuid) for _ in range(_READERS)
            ]:
                done.result()
            yield facts.Fact("time.handles-by-16-threads-ms", _ms(begun), gpu=uuid)
    begun = time.perf_counter()
    with contextlib.suppress(errors.NodeFault):
        target.run("nvidia-smi", "-L")
        yield facts.Fact("time.nvidia-smi-ms", _ms(begun))


def recovery(target: machine.Machine) -> Iterator[facts.Fact]:
    """Read what polls of health read: rows, SRAM, recovery action, the unrepairable flag."""
    nvml = target.nvml()
    watcher = nvml_health.NvmlHealth(nvml.session)
    for gpu in watcher.readable_gpus():
        signs = watcher.probe(gpu)
        yield facts.Fact("health.signs", dataclasses.asdict(signs), gpu=gpu)
        with nvml.session.use():
            handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
            rows = _code(pynvml.nvmlDeviceGetRemappedRows, handle)
            pages = _code(pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
            fabric = _code(pynvml.nvmlDeviceGetModuleId, handle)
            mask = _code(pynvml.nvmlDeviceGetSupportedEventTypes, handle)
        yield facts.Fact("health.remapped-rows", rows, gpu=gpu)
        yield facts.Fact("health.retired-pages", pages, gpu=gpu)
        yield facts.Fact("nvml.module-id", fabric, gpu=gpu)
        yield facts.Fact("event.supported", mask, gpu=gpu)


def events(target: machine.Machine) -> Iterator[facts.Fact]:
    """Listen as the plugin does while a CUDA program writes where it must not."""
    nvml = target.nvml()
    watchers = [nvml_health.NvmlHealth(nvml.session) for _ in range(2)]
    gpu = watchers[0].readable_gpus()[0]
    watched = watchers[0].watch((gpu,))
    yield facts.Fact("event.registered", watched[0].problem or "registered", gpu=gpu)
    before = watchers[0].probe(gpu)
    answer = _fault(target)
    yield facts.Fact(
        "cuda.illegal-address", answer.get("error"), answer.get("refusal", ""), gpu=gpu
    )
    if "refusal" in answer:
        return
    heard = list(_heard(watchers[0]))
    yield facts.Fact("event.xid-of-illegal-address", heard, gpu=gpu)
    after = watchers[0].probe(gpu)
    yield facts.Fact("event.recovery-before-after", [before.recovery, after.recovery], gpu=gpu)
    watchers[1].watch((gpu,))
    yield facts.Fact("event.before-registering", list(_heard(watchers[1], 2.0)), gpu=gpu)


def beside(target: machine.Machine) -> Iterator[facts.Fact]:
    """Measure reading threads beside a wait for events; ms, the median of each."""
    nvml = target.nvml()
    watcher = nvml_health.NvmlHealth(nvml.session)
    gpu = watcher.readable_gpus()[0]
    watcher.watch((gpu,))
    listening = threading.Thread(target=watcher.wait, args=(3.0,), daemon=True)
    listening.start()
    with nvml.session.use(), futures.ThreadPoolExecutor(_BESIDE) as pool:
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
        reading = pynvml.nvmlDeviceGetMemoryInfo
        waiting = [pool.submit(_median, reading, handle) for _ in range(_BESIDE)]
        medians = [done.result() for done in waiting]
    listening.join()
    yield facts.Fact("time.reading-beside-a-wait-ms", medians, gpu=gpu)


def processes(target: machine.Machine) -> Iterator[facts.Fact]:
    """Look at a GPU's memory and lists while a CUDA program holds a GiB of it."""
    nvml = target.nvml()
    gpu = nvml_health.NvmlHealth(nvml.session).readable_gpus()[0]
    users = gpu_processes.NvmlProcesses(nvml.session)
    with nvml.session.use():
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
        before = pynvml.nvmlDeviceGetMemoryInfo(handle).used
        with clients.Client(target, "hold", str(_GIB)) as client:
            answer = client.line()
            if "refusal" in answer:
                yield facts.Fact("memory.of-a-client", problem=answer["refusal"], gpu=gpu)
                return
            used = pynvml.nvmlDeviceGetMemoryInfo(handle).used - before
            listed = [process for process in users.list_processes(gpu) if process.pid == client.pid]
    yield facts.Fact("memory.of-a-client", {"asked": _GIB, "used": used}, gpu=gpu)
    shown = [process.used_bytes for process in listed]
    yield facts.Fact("memory.listed-by-our-pid", {"listed": len(listed), "bytes": shown}, gpu=gpu)


def _fault(target: machine.Machine) -> dict[str, Any]:
    try:
        return clients.ask(target, "fault")
    except errors.NodeFault as fault:
        return {"refusal": str(fault)}


def _heard(watcher: nvml_health.NvmlHealth, within_s: float = _EVENT_S) -> Iterator[str]:
    """Take events until none comes for a second after the first."""
    ends = time.monotonic() + within_s
    patience_s = within_s
    while time.monotonic() < ends and (event := watcher.wait(patience_s)) is not None:
        patience_s = 1.0
        yield f"Xid {event.code}" if isinstance(event, health.XidEvent) else "another event"


def _code(call: Callable[..., Any], handle: object) -> Any:  # noqa: ANN401 - pynvml has no types
    """Call NVML; its answer, or its error in words."""
    try:
        answer = nvml_errors.call_nvml("", call, handle)
    except errors.DeviceFault as fault:
        return f"NVML error {fault.code}: {fault.text}"
    return list(answer) if isinstance(answer, tuple) else answer


def _timed(name: str, call: Callable[[], object], gpu: str) -> facts.Fact:
    begun = time.perf_counter()
    try:
        call()
    except pynvml.NVMLError as refusal:
        return facts.Fact(f"time.{name}", problem=str(refusal), gpu=gpu)
    first = _ms(begun)
    value = {"first ms": first, "median ms": _median(lambda _: call(), None)}
    return facts.Fact(f"time.{name}", value, gpu=gpu)


def _median(call: Callable[[Any], object], argument: object) -> float:
    lasted = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        call(argument)
        lasted.append(_ms(begun))
    return round(statistics.median(lasted), 4)


def _ms(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)
