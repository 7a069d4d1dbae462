"""Published GPUs of a node, and the slots of each that claims can have. Pure.

A slot is one device: the whole GPU, a MIG placement, the shared GPU. GPUs of managed drivers are
read by their vocabularies.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import names
from driver.devices import faces
from driver.resources.dra import pools, slices, taint_rules
from driver.scheduling.allocator.capacity import pool_layout, vocabulary
from driver.scheduling.allocator.policies import base
from driver.scheduling.reports import model

_SLICE = "memory-slice-"
_MODES: Mapping[str, model.Mode] = {
    names.SHARING_MPS: "mps",
    names.SHARING_TIME_SLICING: "time-slicing",
}
_LAYOUT_MODES: Mapping[str, model.Mode] = {
    base.MIG: "mig",
    base.MPS: "mps",
    base.TIME_SLICING: "time-slicing",
}
_FAULT_TAINTS = (
    names.TAINT_LOST,
    names.TAINT_XID,
    names.TAINT_RECOVERY,
    names.TAINT_ROW_REMAP,
    names.TAINT_ECC,
    names.TAINT_QUARANTINE,
)
_PART = "-mig-"
"""Between a GPU's name and that of its part, in the device names of NVIDIA's driver."""
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
    """A GPU as it is published, without its claims; `slots` in the order of its devices.

    A taint whose key begins with one of `fault_taints` says that it failed.
    """

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
    fault_taints: tuple[str, ...] = _FAULT_TAINTS

    @property
    def modes(self) -> tuple[model.Mode, ...]:
        """Modes of its devices, each once."""
        return tuple(dict.fromkeys(slot.mode for slot in self.slots.values()))

    @property
    def health(self) -> model.Health:
        """Health by the taints that exclude new claims: fault taints, or any other."""
        keys = {taint.key for taint in self.taints if taint.effect != "None"}
        if any(key.startswith(self.fault_taints) for key in keys):
            return "unhealthy"
        return "cordoned" if keys else "healthy"


class PublishedPool:
    """The pools of one node's GPUs, ours and those of managed drivers, parsed once.

    `rules` are laid over their slices.
    """

    def __init__(
        self, sources: Sequence[pools.Pool], rules: Sequence[taint_rules.TaintRule] = ()
    ) -> None:
        self.sources = sources
        self._rules = rules

    def is_parsed_from(
        self, sources: Sequence[pools.Pool], rules: Sequence[taint_rules.TaintRule]
    ) -> bool:
        """Return whether it was parsed from these same slices and rules."""
        own_slices = [entry for source in self.sources for entry in source.slices]
        other_slices = [entry for source in sources for entry in source.slices]
        return _are_same(own_slices, other_slices) and _are_same(self._rules, rules)

    @property
    def complete(self) -> bool:
        """True if all slices of the generation exist."""
        return all(source.complete for source in self.sources)

    @functools.cached_property
    def gpus(self) -> tuple[PublishedGpu, ...]:
        """GPUs in PCI order, those of our driver first."""
        return tuple(gpu for _, gpus in self._gpus_by_pool for gpu in gpus)

    @functools.cached_property
    def managed_devices(self) -> Mapping[tuple[str, str, str], str]:
        """GPUs by driver, pool and device, of managed drivers."""
        return {
            (pool.driver, pool.name, device): gpu.name
            for pool, gpus in self._gpus_by_pool
            if not _is_own(pool)
            for gpu in gpus
            for device in gpu.slots
        }

    @functools.cached_property
    def _gpus_by_pool(self) -> tuple[tuple[pools.Pool, tuple[PublishedGpu, ...]], ...]:
        laid = (
            pools.newest_generation([*taint_rules.apply_rules(source.slices, self._rules)])
            for source in self.sources
        )
        return tuple(
            (pool, tuple(_own_gpus(pool)) if _is_own(pool) else _managed_gpus(pool))
            for pool in laid
        )


def _are_same(own: Sequence[object], others: Sequence[object]) -> bool:
    return len(own) == len(others) and all(a is b for a, b in zip(own, others, strict=True))


def _is_own(pool: pools.Pool) -> bool:
    return vocabulary.vocabulary(pool) is vocabulary.OWN


def _own_gpus(pool: pools.Pool) -> Iterator[PublishedGpu]:
    """Yield the GPUs of our pool in PCI order, which is the order of names."""
    by_gpu: dict[str, list[slices.Device]] = {}
    for resource_slice in pool.slices:
        for device in resource_slice.devices:
            by_gpu.setdefault(gpu_name(device.name), []).append(device)
    total = _memory_slices(pool)
    for name in sorted(by_gpu):
        count = total.get(name, 0)
        slots = tuple(_slot(entry, count) for entry in by_gpu[name])
        yield _published_gpu(name, by_gpu[name], slots, count)


def _managed_gpus(pool: pools.Pool) -> tuple[PublishedGpu, ...]:
    """Return the GPUs of a managed driver's pool in PCI order, by its vocabulary."""
    words = vocabulary.vocabulary(pool)
    layout = pool_layout.get_layout(pool)
    by_gpu: dict[int, list[pool_layout.Face]] = {}
    for face in layout.faces.values():
        by_gpu.setdefault(face.gpu, []).append(face)
    gpus = []
    for index, group in by_gpu.items():
        gpu_model = layout.idle_gpus[index].model
        group.sort(key=_whole_first)
        devices = [pool.devices[face.device.name] for face in group]
        name = devices[0].name.partition(_PART)[0]
        count = gpu_model.all_slices.bit_length() if gpu_model.placements else 0
        slots = tuple(_managed_slot(face, words, count) for face in group)
        gpu = _published_gpu(name, devices, slots, count)
        numa = layout.locations[index].numa_node
        gpus.append(
            replace(
                gpu,
                product=gpu_model.product,
                pci=_address(devices[0], words),
                numa=None if numa == base.UNKNOWN_NUMA else numa,
                fault_taints=(*_FAULT_TAINTS, *words.fault_taints),
            )
        )
    return tuple(sorted(gpus, key=lambda gpu: (gpu.pci, gpu.name)))


def _whole_first(face: pool_layout.Face) -> tuple[bool, int, str]:
    return face.mode == base.MIG, len(face.device.name), face.device.name


def _address(device: slices.Device, words: vocabulary.Vocabulary) -> str:
    """Return the PCI address of a device's GPU; empty if it is not published."""
    addresses = (device.attributes.get(name) for name in words.addresses)
    return next((address for address in addresses if isinstance(address, str)), "")


def _managed_slot(face: pool_layout.Face, words: vocabulary.Vocabulary, memory_slices: int) -> Slot:
    mode = _LAYOUT_MODES.get(face.mode, "whole")
    numbers = [bit for bit in range(face.mask.bit_length()) if face.mask >> bit & 1]
    start, width = _place(numbers, memory_slices) if mode == "mig" else (0, model.WHOLE_BAR)
    profile = str(face.device.attributes.get(words.profile, ""))
    return Slot(face.device.name, mode, start, width, face.memory, 0, profile)


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


def _published_gpu(
    name: str, devices: list[slices.Device], slots: tuple[Slot, ...], memory_slices: int
) -> PublishedGpu:
    facts = {key: value for entry in reversed(devices) for key, value in entry.attributes.items()}
    numa = facts.get(names.ATTR_NUMA_NODE)
    peers = facts.get(names.ATTR_NVLINK_PEERS)
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
    if mode == "mig":
        start, width = _place(sorted(_slices_of(device)), memory_slices)
    return Slot(
        device=device.name,
        mode=mode,
        start=start,
        width=width,
        memory=_amount(device, names.CAP_MEMORY),
        compute=_amount(device, names.CAP_COMPUTE),
        profile=str(device.attributes.get(names.ATTR_PROFILE, "")),
    )


def _place(numbers: Sequence[int], memory_slices: int) -> tuple[int, int]:
    """Return start and width of a part with these memory slices, in ascending order."""
    if not memory_slices:
        return 0, model.WHOLE_BAR
    first, last = (numbers[0], numbers[-1]) if numbers else (0, 0)
    start = first * model.WHOLE_BAR // memory_slices
    return start, (last + 1) * model.WHOLE_BAR // memory_slices - start


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
