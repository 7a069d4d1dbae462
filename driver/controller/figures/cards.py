"""GPUs as slices show them, reduced to what the fleet's figures need. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import ids, names
from driver.devices import faces
from driver.resources import attribute, slices

_SLICE = re.compile(r"memory-slice-\d+")
WHOLE, MIG, MPS, TIME_SLICING = (
    kind.value
    for kind in (faces.Kind.WHOLE, faces.Kind.MIG, faces.Kind.MPS, faces.Kind.TIME_SLICING)
)
TAINTED, CORDONED = "tainted", "cordoned"


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU of a pool: `name` is its whole face's. `parts` is the memory of its MIG devices.

    `kept`: why every face of it is kept from new claims, TAINTED or CORDONED, "" where none is.
    """

    name: ids.DeviceName
    product: str
    memory: int
    kept: str
    parts: Mapping[str, int]


def of_slice(found: slices.Slice) -> tuple[Card, ...]:
    """The GPUs of a slice; one's devices are in one slice (D1)."""
    groups: dict[ids.DeviceName, list[slices.Device]] = {}
    for device in found.devices:
        name = gpu_of(device.name)
        if device.name != faces.monitor_name(name):
            groups.setdefault(name, []).append(device)
    return tuple(_card(found.driver, name, group) for name, group in groups.items())


def gpu_of(device: str) -> ids.DeviceName:
    """The name of the GPU that a device is of; one that is named otherwise is one by itself."""
    return faces.gpu_name(device) or ids.DeviceName(device)


def _card(driver: str, name: ids.DeviceName, group: list[slices.Device]) -> Card:
    parts: dict[str, int] = {
        one.name: _memory(one) for one in group if mode_of(name, one.name) == MIG
    }
    whole = (_memory(one) for one in group if mode_of(name, one.name) == WHOLE)
    shared = (_memory(one) for one in group if one.name not in parts)
    return Card(
        name,
        _product(driver, group),
        next(whole, 0) or max([*shared, *_of_parts(group, parts)], default=0),
        _kept(group),
        parts,
    )


def mode_of(gpu: ids.DeviceName, device: str) -> str:
    """How a claim has a GPU that has that face of it."""
    face = device.removeprefix(gpu)
    if face.startswith("-mig-"):
        return MIG
    return {"-mps": MPS, "-ts": TIME_SLICING}.get(face, WHOLE)


def _of_parts(group: Iterable[slices.Device], parts: Mapping[str, int]) -> Iterator[int]:
    """The memory of a GPU that is offered in parts alone: what all its slices have together."""
    mine = {one.name: _slices(one) for one in group if one.name in parts}
    every = len(frozenset().union(*mine.values()))
    return (parts[name] * every // len(found) for name, found in mine.items() if found)


def _slices(device: slices.Device) -> frozenset[str]:
    return frozenset(
        name for use in device.consumes for name in use.counters if _SLICE.fullmatch(name)
    )


def _memory(device: slices.Device) -> int:
    found = device.capacity.get(names.CAP_MEMORY)
    return 0 if found is None else found.value.units


def _product(driver: str, group: Iterable[slices.Device]) -> str:
    full = f"{driver}/{names.ATTR_PRODUCT}"
    told = (attribute.lookup(one.attributes, driver, full) for one in group)
    return next((one for one in told if isinstance(one, str)), "")


def _kept(group: Iterable[slices.Device]) -> str:
    """What ails a GPU counts before that somebody cordoned it."""
    keys = [{one.key for one in device.taints if one.blocks} for device in group]
    if all(found - names.NO_FAULTS for found in keys):
        return TAINTED
    return CORDONED if all(found - names.OWN_TAINTS for found in keys) else ""
