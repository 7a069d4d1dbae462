"""What a node publishes, GPU by GPU: the slots that claims can have of each. Pure.

A slot is one device of ours: the whole GPU, a place for a MIG instance, the GPU shared.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import names
from driver.devices import faces
from driver.resources.dra import pools, slices
from driver.scheduling.reports import model

_SLICE = "memory-slice-"
_MODES: Mapping[str, model.Mode] = {
    names.SHARING_MPS: "mps",
    names.SHARING_TIME_SLICING: "time-slicing",
}
_SICK = frozenset(
    {
        names.TAINT_LOST,
        names.TAINT_XID,
        names.TAINT_RECOVERY,
        names.TAINT_ROW_REMAP,
        names.TAINT_ECC,
        names.TAINT_QUARANTINE,
    }
)
_SILENT = names.OWN_TAINTS | {names.WITHDRAWN_TAINT}


@dataclass(frozen=True, slots=True)
class Slot:
    """A device: what of the GPU it is. `start` and `width` as in `model.Part`."""

    device: str
    mode: model.Mode
    start: int
    width: int
    memory: int
    compute: int
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Shell:
    """A GPU as it is published, without who has it; `offers` in the order of its devices."""

    name: str
    uuid: str
    product: str
    pci: str
    pcie_root: str
    numa: int | None
    memory: int
    memory_slices: int
    peers: int
    allocator: str
    slots: Mapping[str, Slot]
    taints: tuple[model.Taint, ...]

    @property
    def offers(self) -> tuple[model.Mode, ...]:
        """Each mode once."""
        return tuple(dict.fromkeys(one.mode for one in self.slots.values()))

    @property
    def health(self) -> model.Health:
        """By the taints that keep new claims away: ours that tell of a fault, or anybody's."""
        keys = {one.key for one in self.taints if one.effect != "None"}
        if keys & _SICK:
            return "unhealthy"
        return "cordoned" if keys else "healthy"


class Pool:
    """The pool of one node, read once."""

    def __init__(self, of: pools.Pool) -> None:
        self._pool = of

    def is_of(self, other: pools.Pool) -> bool:
        """Whether it was read of these same slices."""
        mine, theirs = self._pool.slices, other.slices
        return len(mine) == len(theirs) and all(a is b for a, b in zip(mine, theirs, strict=True))

    @property
    def complete(self) -> bool:
        """Whether all slices of the generation are there."""
        return self._pool.complete

    @functools.cached_property
    def gpus(self) -> tuple[Shell, ...]:
        """In PCI order, which the order of names is."""
        found: dict[str, list[slices.Device]] = {}
        for one in self._pool.slices:
            for device in one.devices:
                found.setdefault(gpu_of(device.name), []).append(device)
        total = _memory_slices(self._pool)
        return tuple(_shell(name, found[name], total.get(name, 0)) for name in sorted(found))


def gpu_of(device: str) -> str:
    """The GPU of a device; of one that is not named as ours are, the device itself."""
    return faces.gpu_name(device) or device


def _memory_slices(of: pools.Pool) -> dict[str, int]:
    """How many each GPU has, by its counter set."""
    found: dict[str, int] = {}
    for name, counter in of.counters:
        if counter.startswith(_SLICE):
            found[name] = found.get(name, 0) + 1
    return found


def _shell(name: str, devices: list[slices.Device], memory_slices: int) -> Shell:
    facts = {key: value for one in reversed(devices) for key, value in one.attributes.items()}
    numa = facts.get(names.ATTR_NUMA_NODE)
    peers = facts.get(names.ATTR_NVLINK_PEERS)
    slots = tuple(_slot(one, memory_slices) for one in devices)
    whole = [one.memory for one in slots if one.mode != "mig"]
    return Shell(
        name=name,
        uuid=_uuid(devices),
        product=str(facts.get(names.ATTR_PRODUCT, "")),
        pci=str(facts.get(names.ATTR_PCI_BUS_ID, "")),
        pcie_root=str(facts.get(names.ATTR_PCIE_ROOT, "")),
        numa=numa if isinstance(numa, int) else None,
        memory=max(whole, default=0) or _of_parts(slots),
        memory_slices=memory_slices,
        peers=peers if isinstance(peers, int) else 0,
        allocator="controller"
        if any(one.is_tainted_for("controller") for one in devices)
        else "scheduler",
        slots={one.device: one for one in slots},
        taints=_taints(devices),
    )


def _uuid(devices: list[slices.Device]) -> str:
    for one in devices:
        key = names.ATTR_PARENT_UUID if _kind(one) == names.TYPE_MIG else names.ATTR_UUID
        if key in one.attributes:
            return str(one.attributes[key])
    return ""


def _kind(device: slices.Device) -> str:
    return str(device.attributes.get(names.ATTR_TYPE, ""))


def _slot(device: slices.Device, memory_slices: int) -> Slot:
    mode = _mode(device)
    start, width = 0, model.WHOLE_BAR
    if mode == "mig" and memory_slices:
        mine = sorted(_slices_of(device)) or [0]
        start = mine[0] * model.WHOLE_BAR // memory_slices
        width = (mine[-1] + 1) * model.WHOLE_BAR // memory_slices - start
    return Slot(
        device=device.name,
        mode=mode,
        start=start,
        width=width,
        memory=_amount(device, names.CAP_MEMORY),
        compute=_amount(device, names.CAP_COMPUTE),
        profile=str(device.attributes.get(names.ATTR_PROFILE, "")),
    )


def _mode(device: slices.Device) -> model.Mode:
    kind = _kind(device)
    if kind == names.TYPE_MIG:
        return "mig"
    if kind == names.TYPE_MONITOR:
        return "monitor"
    return _MODES.get(str(device.attributes.get(names.ATTR_SHARING, "")), "whole")


def _slices_of(device: slices.Device) -> Iterator[int]:
    for use in device.consumes:
        for counter in use.counters:
            if counter.startswith(_SLICE):
                yield int(counter.removeprefix(_SLICE))


def _amount(device: slices.Device, name: str) -> int:
    found = device.capacity.get(name)
    return found.value.units if found else 0


def _of_parts(slots: Iterable[Slot]) -> int:
    """The memory of a GPU of which only MIG devices are published: what its slices have."""
    most = (one.memory * model.WHOLE_BAR // one.width for one in slots if one.width)
    return max(most, default=0)


def _taints(devices: list[slices.Device]) -> tuple[model.Taint, ...]:
    """Each key and value once, those that say who allocates left out."""
    found = {
        (one.key, one.value, one.effect): model.Taint(
            key=one.key, value=one.value, effect=one.effect, added=one.added
        )
        for device in devices
        for one in device.taints
        if one.key not in _SILENT
    }
    return tuple(found[key] for key in sorted(found))
