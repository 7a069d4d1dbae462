"""Layout of a pool for policies: which device is which face of which GPU. Pure.

Devices that draw on one counter set are of one GPU (D1). Of a device that draws on none the
driver's vocabulary says which GPU it is part of; else it is a GPU by itself.
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from driver import names
from driver.resources.dra import attributes as dra_attributes
from driver.resources.dra import pools, slices
from driver.scheduling.allocator.capacity import vocabulary
from driver.scheduling.allocator.policies import base

_MAX_MODELS = 4096
_SLICE = re.compile(r"memory-?[sS]lice-?(\d+)")
"""A counter, and a capacity of NVIDIA's static MIG devices."""


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
    products: Mapping[str, int]
    """Number of GPUs by product."""


def get_layout(pool: pools.Pool) -> PoolLayout:
    """Return the layout of a pool, without monitor devices.

    Equivalent pools share one, so the devices of its faces may be those of another pool: of equal
    names, attributes and capacities, but for UUIDs.
    """
    return pool.cached(_shared_layout)


def _shared_layout(pool: pools.Pool) -> PoolLayout:
    keys = vocabulary.vocabulary(pool).gpu_keys
    if any(map(pools.is_uuid, keys)):  # UUIDs say which devices are of one GPU
        return _compute_layout(pool)
    return pool.cached_for_equivalents(_compute_layout)


def _compute_layout(pool: pools.Pool) -> PoolLayout:
    reader = _Reader(pool.driver, vocabulary.vocabulary(pool))
    indexes: dict[str, int] = {}
    members: list[list[Face]] = []
    for device in _devices(pool):
        if reader.is_ignored(device):
            continue
        gpu = indexes.setdefault(reader.gpu_key(device), len(indexes))
        if gpu == len(members):
            members.append([])
        members[gpu].append(reader.face(device, gpu))
    groups = [_with_parts(group) for group in members]
    models = [reader.model(group) for group in groups]
    idle = tuple(base.GpuState(model, base.IDLE, base.FULL, model.all_slices) for model in models)
    positions = tuple(reader.location(group) for group in groups)
    return PoolLayout(
        {face.device.name: face for group in groups for face in group},
        idle,
        positions,
        Counter(model.product for model in models),
    )


def _devices(pool: pools.Pool) -> Iterator[slices.Device]:
    for resource_slice in pool.slices:
        yield from resource_slice.devices


def _with_parts(group: list[Face]) -> list[Face]:
    """Return the devices of a GPU; fixed partitions without slices count as one slice each."""
    if any(face.mask for face in group):
        return group
    number = itertools.count()
    return [
        face._replace(mask=1 << next(number)) if face.mode == base.MIG else face for face in group
    ]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the devices of a driver by its vocabulary."""

    driver: str
    words: vocabulary.Vocabulary

    def is_ignored(self, device: slices.Device) -> bool:
        """Return whether a device is no part of a GPU's capacity."""
        return self._text(device, names.ATTR_TYPE) in self.words.ignored_types

    def gpu_key(self, device: slices.Device) -> str:
        """Return a key that the devices of one GPU share."""
        if device.consumes:
            return device.consumes[0].set
        keys = (self._text(device, name) for name in self.words.gpu_keys)
        kind = self._text(device, names.ATTR_TYPE)
        return self.words.gpu_key(kind, keys) or device.name

    def face(self, device: slices.Device, gpu: int) -> Face:
        """Return a device with its mode, slices and memory."""
        kind = self._text(device, names.ATTR_TYPE), self._text(device, names.ATTR_SHARING) or None
        whole = base.TIME_SLICING if device.allow_multiple else base.WHOLE
        amount = device.capacity.get(names.CAP_MEMORY)
        memory = 0 if amount is None else amount.value.units
        mask = 0
        counters = (key for use in device.consumes for key in use.counters)
        for name in (*counters, *device.capacity):
            part = _SLICE.fullmatch(name)
            mask |= 1 << int(part[1]) if part else 0
        return Face(gpu, self.words.modes.get(kind, whole), device, mask, memory)

    def model(self, group: list[Face]) -> base.GpuModel:
        """Return the model of the GPU of some devices."""
        parts = tuple(
            base.MigPlacement(self._text(face.device, self.words.profile), face.mask, face.memory)
            for face in group
            if face.mode == base.MIG
        )
        product = self._text(group[0].device, self.words.product)
        return _intern_model(product, max(face.memory for face in group), parts)

    def location(self, group: list[Face]) -> base.GpuLocation:
        """Return where the GPU of some devices is."""
        device = group[0].device
        peers = [self._number(face.device, names.ATTR_NVLINK_PEERS) for face in group]
        numa_node = self._number(device, names.ATTR_NUMA_NODE)
        return base.GpuLocation(
            max(mask or 0 for mask in peers),
            self._text(device, names.ATTR_PCIE_ROOT),
            base.UNKNOWN_NUMA if numa_node is None else numa_node,
        )

    def _text(self, device: slices.Device, name: str) -> str:
        value = self._attribute(device, name)
        return value if isinstance(value, str) else ""

    def _number(self, device: slices.Device, name: str) -> int | None:
        """Return a number, the first of a list (KEP-5491); None if it is missing."""
        value = self._attribute(device, name)
        first = value[0] if isinstance(value, tuple) and value else value
        return first if isinstance(first, int) else None

    def _attribute(self, device: slices.Device, name: str) -> dra_attributes.Value | None:
        full = name if "/" in name else f"{self.driver}/{name}"
        return dra_attributes.find_attribute(device.attributes, self.driver, full)


@functools.lru_cache(maxsize=_MAX_MODELS)
def _intern_model(product: str, memory: int, parts: tuple[base.MigPlacement, ...]) -> base.GpuModel:
    """Return one object per model, so that comparison is quick."""
    return base.GpuModel(product, memory, parts)
