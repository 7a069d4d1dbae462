"""Facts that the kubelet plugin's own code reads: GPUs, MIG geometry, files for containers."""

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml

from driver import errors
from driver.kubeletplugin import nvml
from driver.kubeletplugin.cdi import template
from driver.kubeletplugin.cdi.driver import files as driver_files
from hack.hardware import facts, machine

_VERSIONS = ("", "_v1", "_v2", "_v3", "_v4")
_FUNCTION = re.compile(r"pynvml\.(nvml[A-Z]\w+)")


def inventory(target: machine.Machine) -> Iterator[facts.Fact]:
    """Read every GPU as the plugin publishes it."""
    try:
        read = target.nvml().inventory()
    except errors.DeviceFault as fault:
        yield facts.Fact("nvml.inventory", problem=str(fault))
        return
    yield facts.Fact("nvml.inventory", len(read.gpus))
    broken = [dataclasses.asdict(gpu) for gpu in read.broken]
    yield facts.Fact("nvml.broken", broken)
    for gpu in read.gpus:
        raw = target.keep(f"gpu-{gpu.minor}.json", json.dumps(dataclasses.asdict(gpu), default=str))
        yield facts.Fact("nvml.gpu", gpu.product, raw=raw, gpu=gpu.uuid)


def geometry(target: machine.Machine) -> Iterator[facts.Fact]:
    """List MIG's mode and profiles, with the names that NVML has for them, whatever the mode is."""
    library = target.nvml()
    geometries = {gpu.uuid: gpu.mig for gpu in library.inventory().gpus}
    with library.session.use():
        for uuid, mig in geometries.items():
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            yield facts.Fact("mig.mode", _answer(pynvml.nvmlDeviceGetMigMode, handle), gpu=uuid)
            infos = (
                _answer(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, number)
                for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
            )
            names = {info.id: _text(info.name) for info in infos if info is not None}
            yield facts.Fact("mig.profile-names", names, gpu=uuid)
            shown = None if mig is None else json.loads(json.dumps(_plain(mig), default=str))
            yield facts.Fact("mig.profiles", shown, gpu=uuid)


def functions(target: machine.Machine) -> Iterator[facts.Fact]:
    """List the NVML functions that the driver calls and its library does not have."""
    names = called_functions()
    with target.nvml().session.use():
        missing = sorted(name for name in names if not _is_exported(name))
    yield facts.Fact("nvml.called-functions", len(names))
    yield facts.Fact("nvml.missing-functions", missing)


def called_functions() -> frozenset[str]:
    """Return the NVML functions that the kubelet plugin's modules name."""
    folder = Path(next(iter(nvml.__path__)))
    return frozenset(
        name
        for path in folder.rglob("*.py")
        for name in _FUNCTION.findall(path.read_text())
        if inspect.isfunction(getattr(pynvml, name, None))
    )


def files(target: machine.Machine) -> Iterator[facts.Fact]:
    """Read what a container with a GPU gets, beside what NVIDIA's toolkit gives."""
    try:
        common = driver_files.DriverFiles(target.root, target.host).read()
    except errors.NodeFault as fault:
        yield facts.Fact("cdi.files", problem=str(fault))
        return
    raw = target.keep(
        "cdi-common.json", json.dumps(dataclasses.asdict(common), default=str, indent=1)
    )
    counts = {name: len(getattr(common, name)) for name in ("nodes", "mounts", "hooks")}
    yield facts.Fact("cdi.files", counts, raw=raw)
    yield from _toolkit(target, common)


def _toolkit(target: machine.Machine, common: template.Common) -> Iterator[facts.Fact]:
    try:
        done = machine.run(["nvidia-ctk", "cdi", "generate", "--format=json"], limit_s=60)
    except errors.NodeFault as fault:
        yield facts.Fact("cdi.toolkit-alike", problem=str(fault))
        return
    raw = target.keep("nvidia-ctk-cdi.json", done.output or done.text)
    try:
        edits = json.loads(done.output)["containerEdits"]
    except (ValueError, KeyError):
        yield facts.Fact("cdi.toolkit-alike", problem=f"exit status {done.status}", raw=raw)
        return
    theirs = {mount["containerPath"] for mount in edits.get("mounts", ())}
    ours = {mount.container_path for mount in common.mounts}
    value = {"theirs alone": sorted(theirs - ours), "ours alone": sorted(ours - theirs)}
    yield facts.Fact("cdi.toolkit-alike", value, raw=raw)


def _is_exported(name: str) -> bool:
    """Tell whether the library has a function, in any of its versions."""
    return any(hasattr(pynvml.nvmlLib, f"{name}{version}") for version in _VERSIONS)


def _plain(value: object) -> object:
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value  # type: ignore[arg-type]


def _text(value: Any) -> Any:  # noqa: ANN401 - a field of a ctypes structure
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _answer(call: Any, *arguments: object) -> Any:  # noqa: ANN401 - pynvml has no types
    """Call NVML; None where it refuses, as the GPU or the driver may."""
    try:
        return call(*arguments)
    except pynvml.NVMLError:
        return None
