"""Layout of a pool for policies: which device is which face of which GPU. Pure.

Devices that draw on one counter set are of one GPU (D1); a device that draws on none is a GPU by
itself.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from driver import names
from driver.resources.dra import attributes, pools, slices
from driver.scheduling.allocator.policies import base

T = TypeVar("T")
_MAX_MODELS = 4096
_SLICE = re.compile(r"memory-slice-(\d+)")
_MODES = {
    (names.TYPE_SHARE, names.SHARING_MPS): base.MPS,
    (names.TYPE_SHARE, names.SHARING_TIME_SLICING): base.TIME_SLICING,
    (names.TYPE_MIG, None): base.MIG,
}


class Face(NamedTuple):
    """A device: the index of its GPU in the pool, its mode, and with MIG its slices."""

    gpu: int
    mode: str
    device: slices.Device
    mask: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """Faces of a pool by device name, and its GPUs without usage."""

    faces: Mapping[str, Face]
    idle_gpus: tuple[base.GpuState, ...]
    locations: tuple[base.GpuLocation, ...]


def get_layout(pool: pools.Pool) -> PoolLayout:
    """Return the layout of a pool, without monitor devices."""
    return pool.cached(_compute_layout)


def _compute_layout(pool: pools.Pool) -> PoolLayout:
    indexes: dict[str, int] = {}
    faces: dict[str, Face] = {}
    members: list[list[Face]] = []
    for device in _devices(pool):
        key = device.consumes[0].set if device.consumes else device.name
        gpu = indexes.setdefault(key, len(indexes))
        if gpu == len(members):
            members.append([])
        face = _face(pool.driver, device, gpu)
        faces[device.name] = face
        members[gpu].append(face)
    models = [_model(pool.driver, group) for group in members]
    idle = tuple(base.GpuState(model, base.IDLE, base.FULL, model.all_slices) for model in models)
    positions = tuple(_location(pool.driver, group) for group in members)
    return PoolLayout(faces, idle, positions)


def _devices(pool: pools.Pool) -> Iterator[slices.Device]:
    for resource_slice in pool.slices:
        for device in resource_slice.devices:
            if _attribute(pool.driver, device, names.ATTR_TYPE, str) != names.TYPE_MONITOR:
                yield device


def _face(driver: str, device: slices.Device, gpu: int) -> Face:
    kind = _attribute(driver, device, names.ATTR_TYPE, str)
    mode = _MODES.get((kind or "", _attribute(driver, device, names.ATTR_SHARING, str)), base.WHOLE)
    amount = device.capacity.get(names.CAP_MEMORY)
    memory = 0 if amount is None else amount.value.units
    mask = 0
    for name in (key for use in device.consumes for key in use.counters):
        part = _SLICE.fullmatch(name)
        mask |= 1 << int(part[1]) if part else 0
    return Face(gpu, mode, device, mask, memory)


def _model(driver: str, group: list[Face]) -> base.GpuModel:
    parts = tuple(
        base.MigPlacement(
            _attribute(driver, face.device, names.ATTR_PROFILE, str) or "", face.mask, face.memory
        )
        for face in group
        if face.mode == base.MIG
    )
    product = _attribute(driver, group[0].device, names.ATTR_PRODUCT, str) or ""
    return _intern_model(product, max(face.memory for face in group), parts)


@functools.lru_cache(maxsize=_MAX_MODELS)
def _intern_model(product: str, memory: int, parts: tuple[base.MigPlacement, ...]) -> base.GpuModel:
    """Return one object per model, so that comparison is quick."""
    return base.GpuModel(product, memory, parts)


def _location(driver: str, group: list[Face]) -> base.GpuLocation:
    device = group[0].device
    peers = [_attribute(driver, face.device, names.ATTR_NVLINK_PEERS, int) for face in group]
    root = _attribute(driver, device, names.ATTR_PCIE_ROOT, str)
    attribute = _attribute(driver, device, names.ATTR_NUMA_NODE, int)
    numa_node = base.UNKNOWN_NUMA if attribute is None else attribute
    return base.GpuLocation(max(face or 0 for face in peers), root or "", numa_node)


def _attribute(driver: str, device: slices.Device, name: str, kind: type[T]) -> T | None:
    """Return an attribute of a device; None if it is missing or of another type."""
    full = name if "/" in name else f"{driver}/{name}"
    value = attributes.find_attribute(device.attributes, driver, full)
    return value if isinstance(value, kind) else None
