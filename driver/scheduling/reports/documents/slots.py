"""Published GPUs of a node, and the slots of each that claims can have. Pure.

A slot is one device of ours: the whole GPU, a MIG placement, the shared GPU.
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
_FAULT_TAINTS = frozenset(
    {
        names.TAINT_LOST,
        names.TAINT_XID,
        names.TAINT_RECOVERY,
        names.TAINT_ROW_REMAP,
        names.TAINT_ECC,
        names.TAINT_QUARANTINE,
    }
)
_HIDDEN_TAINTS = names.OWN_TAINTS | {names.WITHDRAWN_TAINT}


@dataclass(frozen=True, slots=True)
class Slot:
    """A device and its part of the GPU. `start` and `width` as in `model.Part`."""

    device: str
    mode: model.Mode
    start: int
    width: int
    memory: int
    compute: int
    profile: str = ""


@dataclass(frozen=True, slots=True)
class PublishedGpu:
    """A GPU as it is published, without its claims; `slots` in the order of its devices."""

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
    def modes(self) -> tuple[model.Mode, ...]:
        """Modes of its devices, each once."""
        return tuple(dict.fromkeys(slot.mode for slot in self.slots.values()))

    @property
    def health(self) -> model.Health:
        """Health by the taints that exclude new claims: our fault taints, or any other."""
        keys = {taint.key for taint in self.taints if taint.effect != "None"}
        if keys & _FAULT_TAINTS:
            return "unhealthy"
        return "cordoned" if keys else "healthy"


class PublishedPool:
    """The pool of one node, parsed once."""

    def __init__(self, pool: pools.Pool) -> None:
        self._pool = pool

    def is_parsed_from(self, other: pools.Pool) -> bool:
        """Return whether it was parsed from these same slices."""
        own_slices, other_slices = self._pool.slices, other.slices
        return len(own_slices) == len(other_slices) and all(
            a is b for a, b in zip(own_slices, other_slices, strict=True)
        )

    @property
    def complete(self) -> bool:
        """True if all slices of the generation exist."""
        return self._pool.complete

    @functools.cached_property
    def gpus(self) -> tuple[PublishedGpu, ...]:
        """GPUs in PCI order, which is the order of names."""
        by_gpu: dict[str, list[slices.Device]] = {}
        for resource_slice in self._pool.slices:
            for device in resource_slice.devices:
                by_gpu.setdefault(gpu_name(device.name), []).append(device)
        total = _memory_slices(self._pool)
        return tuple(
            _published_gpu(name, by_gpu[name], total.get(name, 0)) for name in sorted(by_gpu)
        )


def gpu_name(device: str) -> str:
    """Return the GPU of a device; the device itself if it is not named as ours are."""
    return faces.gpu_name(device) or device


def _memory_slices(pool: pools.Pool) -> dict[str, int]:
    """Return the number of memory slices of each GPU, by its counter set."""
    counts: dict[str, int] = {}
    for name, counter in pool.counters:
        if counter.startswith(_SLICE):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _published_gpu(name: str, devices: list[slices.Device], memory_slices: int) -> PublishedGpu:
    facts = {key: value for entry in reversed(devices) for key, value in entry.attributes.items()}
    numa = facts.get(names.ATTR_NUMA_NODE)
    peers = facts.get(names.ATTR_NVLINK_PEERS)
    slots = tuple(_slot(entry, memory_slices) for entry in devices)
    whole = [entry.memory for entry in slots if entry.mode != "mig"]
    return PublishedGpu(
        name=name,
        uuid=_uuid(devices),
        product=str(facts.get(names.ATTR_PRODUCT, "")),
        pci=str(facts.get(names.ATTR_PCI_BUS_ID, "")),
        pcie_root=str(facts.get(names.ATTR_PCIE_ROOT, "")),
        numa=numa if isinstance(numa, int) else None,
        memory=max(whole, default=0) or _memory_of_parts(slots),
        memory_slices=memory_slices,
        peers=peers if isinstance(peers, int) else 0,
        allocator="controller"
        if any(entry.is_tainted_for("controller") for entry in devices)
        else "scheduler",
        slots={entry.device: entry for entry in slots},
        taints=_taints(devices),
    )


def _uuid(devices: list[slices.Device]) -> str:
    for device in devices:
        key = names.ATTR_PARENT_UUID if _kind(device) == names.TYPE_MIG else names.ATTR_UUID
        if key in device.attributes:
            return str(device.attributes[key])
    return ""


def _kind(device: slices.Device) -> str:
    return str(device.attributes.get(names.ATTR_TYPE, ""))


def _slot(device: slices.Device, memory_slices: int) -> Slot:
    mode = _mode(device)
    start, width = 0, model.WHOLE_BAR
    if mode == "mig" and memory_slices:
        memory_slice_numbers = sorted(_slices_of(device)) or [0]
        start = memory_slice_numbers[0] * model.WHOLE_BAR // memory_slices
        width = (memory_slice_numbers[-1] + 1) * model.WHOLE_BAR // memory_slices - start
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
    capacity = device.capacity.get(name)
    return capacity.value.units if capacity else 0


def _memory_of_parts(slots: Iterable[Slot]) -> int:
    """Return the memory of a GPU published in MIG devices alone: that of its slices."""
    most = (slot.memory * model.WHOLE_BAR // slot.width for slot in slots if slot.width)
    return max(most, default=0)


def _taints(devices: list[slices.Device]) -> tuple[model.Taint, ...]:
    """Return each key and value once, without those that name the allocator."""
    by_key = {
        (taint.key, taint.value, taint.effect): model.Taint(
            key=taint.key, value=taint.value, effect=taint.effect, added=taint.added
        )
        for device in devices
        for taint in device.taints
        if taint.key not in _HIDDEN_TAINTS
    }
    return tuple(by_key[key] for key in sorted(by_key))
