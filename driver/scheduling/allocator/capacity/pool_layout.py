"""A pool as policies see it: which device is which face of which GPU. Pure.

Devices that draw on one counter set are of one GPU (D1); one that draws on none is one by itself.
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
    """A device: its GPU's place in the pool, the way it uses it, and of MIG the slices."""

    gpu: int
    mode: str
    device: slices.Device
    mask: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """Of a pool: its faces by device name, and its GPUs as they are when nobody uses them."""

    faces: Mapping[str, Face]
    idle_gpus: tuple[base.GpuState, ...]
    locations: tuple[base.GpuLocation, ...]


def get_layout(found: pools.Pool) -> PoolLayout:
    """Of a pool. Monitors are no way to use a GPU and are left out."""
    return found.derived(_compute_layout)


def _compute_layout(found: pools.Pool) -> PoolLayout:
    places: dict[str, int] = {}
    faces: dict[str, Face] = {}
    members: list[list[Face]] = []
    for device in _devices(found):
        key = device.consumes[0].set if device.consumes else device.name
        card = places.setdefault(key, len(places))
        if card == len(members):
            members.append([])
        face = _face(found.driver, device, card)
        faces[device.name] = face
        members[card].append(face)
    models = [_model(found.driver, group) for group in members]
    idle = tuple(base.GpuState(model, base.IDLE, base.FULL, model.all_slices) for model in models)
    positions = tuple(_location(found.driver, group) for group in members)
    return PoolLayout(faces, idle, positions)


def _devices(found: pools.Pool) -> Iterator[slices.Device]:
    for one in found.slices:
        for device in one.devices:
            if _attribute(found.driver, device, names.ATTR_TYPE, str) != names.TYPE_MONITOR:
                yield device


def _face(driver: str, device: slices.Device, card: int) -> Face:
    kind = _attribute(driver, device, names.ATTR_TYPE, str)
    mode = _MODES.get((kind or "", _attribute(driver, device, names.ATTR_SHARING, str)), base.WHOLE)
    amount = device.capacity.get(names.CAP_MEMORY)
    memory = 0 if amount is None else amount.value.units
    mask = 0
    for name in (key for use in device.consumes for key in use.counters):
        part = _SLICE.fullmatch(name)
        mask |= 1 << int(part[1]) if part else 0
    return Face(card, mode, device, mask, memory)


def _model(driver: str, group: list[Face]) -> base.GpuModel:
    parts = tuple(
        base.MigPlacement(
            _attribute(driver, one.device, names.ATTR_PROFILE, str) or "", one.mask, one.memory
        )
        for one in group
        if one.mode == base.MIG
    )
    product = _attribute(driver, group[0].device, names.ATTR_PRODUCT, str) or ""
    return _intern_model(product, max(one.memory for one in group), parts)


@functools.lru_cache(maxsize=_MAX_MODELS)
def _intern_model(product: str, memory: int, parts: tuple[base.MigPlacement, ...]) -> base.GpuModel:
    """One object a kind, so that comparing is quick."""
    return base.GpuModel(product, memory, parts)


def _location(driver: str, group: list[Face]) -> base.GpuLocation:
    device = group[0].device
    peers = [_attribute(driver, one.device, names.ATTR_NVLINK_PEERS, int) for one in group]
    root = _attribute(driver, device, names.ATTR_PCIE_ROOT, str)
    numa = _attribute(driver, device, names.ATTR_NUMA_NODE, int)
    place = base.UNKNOWN_NUMA if numa is None else numa
    return base.GpuLocation(max(one or 0 for one in peers), root or "", place)


def _attribute(driver: str, device: slices.Device, name: str, kind: type[T]) -> T | None:
    """An attribute of a device; None where it is not there or of another type."""
    full = name if "/" in name else f"{driver}/{name}"
    value = attributes.lookup(device.attributes, driver, full)
    return value if isinstance(value, kind) else None
