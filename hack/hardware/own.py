"""Facts that need changes of a machine's settings, each undone; only with --level own.

MIG mode and instances, compute mode, time slices and a reset, all through the plugin's own code.
What a change began from is written down first; `undo` reads it, also after a step was killed.
"""

import functools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml

from driver import clock, errors, ids
from driver.devices import mig as geometry
from driver.kubeletplugin.host import nvidia_smi
from driver.kubeletplugin.nvml import health, library, mig_instances
from driver.kubeletplugin.nvml import reset as nvml_reset
from driver.kubeletplugin.nvml.queries import compute_mode as querie_compute_mode
from driver.kubeletplugin.prepare import compute_modes
from hack.hardware import facts, machine

_PATIENCE_S = 10.0
_INTERVALS = ("Short", "Medium", "Long", "Default")


def mig(target: machine.Machine) -> Iterator[facts.Fact]:
    """Turn MIG on with and without an event set, make each profile once, and turn it off."""
    nvml = target.nvml()
    gpu = _first(nvml)
    if gpu is None:
        yield facts.Fact("mig.enable", problem="no GPU here has MIG")
        return
    _note(target, "mig", {"gpu": gpu})
    act = mig_instances.MigInstances(nvml.session, clock.SystemClock())
    watcher = health.NvmlHealth(nvml.session)
    watcher.watch((gpu,))
    yield _acted("mig.enable-beside-our-events", gpu, lambda: act.enable(gpu))
    watcher.close()
    yield _acted("mig.enable", gpu, lambda: act.enable(gpu))
    read = next(each for each in nvml.inventory().gpus if each.uuid == gpu)
    if read.mig is not None and read.mig.enabled:
        for profile in read.mig.profiles:
            place = geometry.InstanceRef(gpu, profile.id, profile.placements[0])
            yield from _made(act, place, profile.name)
    yield _acted("mig.disable", gpu, lambda: act.disable(gpu, _PATIENCE_S))


def undo_mig(target: machine.Machine) -> None:
    """Take off every instance that `mig` may have left, and MIG where it was off."""
    noted = _noted(target, "mig")
    if noted is None:
        return
    nvml, gpu = target.nvml(), ids.GpuUuid(noted["gpu"])
    act = mig_instances.MigInstances(nvml.session, clock.SystemClock())
    read = next(each for each in nvml.inventory().gpus if each.uuid == gpu)
    if read.mig is not None and read.mig.enabled:
        for profile in read.mig.profiles:
            for placement in profile.placements:
                act.destroy(geometry.InstanceRef(gpu, profile.id, placement), 0.0)
        act.disable(gpu, _PATIENCE_S)


def compute_mode(target: machine.Machine) -> Iterator[facts.Fact]:
    """Set EXCLUSIVE_PROCESS and the default."""
    nvml = target.nvml()
    gpu = nvml.inventory().gpus[0].uuid
    with nvml.session.use():
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
        mode = pynvml.nvmlDeviceGetComputeMode(handle)
    _note(target, "compute-mode", {"gpu": gpu, "mode": str(mode)})
    act = querie_compute_mode.NvmlComputeModes(nvml.session)
    yield _acted("mode.exclusive", gpu, lambda: act.write(gpu, compute_modes.EXCLUSIVE))
    yield _acted("mode.default", gpu, lambda: act.write(gpu, compute_modes.DEFAULT))


def undo_compute_mode(target: machine.Machine) -> None:
    """Set the compute mode that the GPU had."""
    noted = _noted(target, "compute-mode")
    if noted is None:
        return
    with target.nvml().session.use():
        handle = pynvml.nvmlDeviceGetHandleByUUID(noted["gpu"])
        pynvml.nvmlDeviceSetComputeMode(handle, int(noted["mode"]))


def time_slice(target: machine.Machine) -> Iterator[facts.Fact]:
    """Set each interval, list it, and set the default."""
    gpu = target.nvml().inventory().gpus[0].uuid
    _note(target, "time-slice", {"gpu": gpu})
    smi = nvidia_smi.NvidiaSmi(target.root)
    for interval in _INTERVALS:
        yield _acted(f"slice.{interval}", gpu, functools.partial(smi.set_interval, gpu, interval))
        listed = target.run("nvidia-smi", "compute-policy", "-l")
        raw = target.keep(f"compute-policy-{interval}.txt", listed.text)
        yield facts.Fact(f"slice.{interval}-listed", listed.status, raw=raw, gpu=gpu)


def undo_time_slice(target: machine.Machine) -> None:
    """Set the default interval."""
    if (noted := _noted(target, "time-slice")) is not None:
        nvidia_smi.NvidiaSmi(target.root).set_interval(ids.GpuUuid(noted["gpu"]), "Default")


def reset(target: machine.Machine) -> Iterator[facts.Fact]:
    """Reset a GPU that nothing uses, and see what it lost."""
    nvml = target.nvml()
    gpu = nvml.inventory().gpus[0].uuid
    watcher = health.NvmlHealth(nvml.session)
    before = watcher.probe(gpu).energy_mj
    act = nvml_reset.GpuResetter(nvml.session, nvidia_smi.NvidiaSmi(target.root).reset)
    yield _acted("reset.done", gpu, lambda: act.reset(gpu))
    after = watcher.probe(gpu).energy_mj
    yield facts.Fact("reset.energy", {"before": before, "after": after}, gpu=gpu)
    listed = target.run("nvidia-smi", "compute-policy", "-l")
    raw = target.keep("compute-policy-after-reset.txt", listed.text)
    yield facts.Fact("reset.slice-listed", listed.status, raw=raw, gpu=gpu)


def _first(nvml: library.NvmlLibrary) -> ids.GpuUuid | None:
    gpus = (gpu for gpu in nvml.inventory().gpus if gpu.mig is not None and not gpu.mig.enabled)
    return next((gpu.uuid for gpu in gpus), None)


def _made(
    act: mig_instances.MigInstances, place: geometry.InstanceRef, name: str
) -> Iterator[facts.Fact]:
    """Make an instance twice over, and take it off between."""
    uuids = []
    begun = time.perf_counter()
    try:
        for _ in range(2):
            uuids.append(act.create(place).uuid)
            act.destroy(place, _PATIENCE_S)
    except errors.DeviceFault as fault:
        yield facts.Fact(f"mig.make-{name}", problem=str(fault), gpu=place.gpu)
        return
    value = {"seconds": round(time.perf_counter() - begun, 3), "same uuid": len(set(uuids)) == 1}
    yield facts.Fact(f"mig.make-{name}", value, gpu=place.gpu)


def _acted(fact: str, gpu: ids.GpuUuid, act: Callable[[], object]) -> facts.Fact:
    """Do something and measure it; what refuses it, in words."""
    begun = time.perf_counter()
    try:
        answer = act()
    except errors.RationError as fault:
        return facts.Fact(fact, problem=str(fault), gpu=gpu)
    value = {"seconds": round(time.perf_counter() - begun, 3), "answer": str(answer)}
    return facts.Fact(fact, value, gpu=gpu)


def _note(target: machine.Machine, step: str, noted: dict[str, str]) -> None:
    _path(target, step).parent.mkdir(parents=True, exist_ok=True)
    _path(target, step).write_text(json.dumps(noted))


def _noted(target: machine.Machine, step: str) -> dict[str, str] | None:
    """Take the note of a step, so that its change is undone once."""
    path = _path(target, step)
    if not path.is_file():
        return None
    noted: dict[str, str] = json.loads(path.read_text())
    path.unlink()
    return noted


def _path(target: machine.Machine, step: str) -> Path:
    return target.out / "undo" / f"{step}.json"
