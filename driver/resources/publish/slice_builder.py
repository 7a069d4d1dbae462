"""Builds a node's ResourceSlices: the faces of its GPUs as devices (D1).

A GPU's devices stay together in one slice, so that one GPU's taints are one write; counter sets
have slices of their own, before those of the devices. A GPU that exceeds the limits of the API is
refused whole: half a GPU would be wrong.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driver import errors, ids, names
from driver.devices import attributes, counters, faces, model
from driver.resources import quantities
from driver.resources.dra import capacities, slices

MAX_DEVICES = 64
"""Devices a slice: the limit once one of them carries a taint or consumes counters (api v1)."""
MAX_COUNTER_SETS = 8
"""Counter sets a slice (api v1)."""
MAX_COUNTERS = 32
"""Counters a set (api v1)."""
MAX_PROPERTIES = 30
"""Attributes and capacities a device: 32 by api v1, of which we leave two."""
MAX_TAINTS = 16
"""Taints a device (api v1)."""
_MAX_STRING = 64
_MAX_NAME = 63
_MAX_OBJECT_NAME = 253
_DIGITS = 12
_MEMORY_STEP = 128 << 20


@dataclass(frozen=True, slots=True)
class Owner:
    """The Node that owns the slices: they go when it goes."""

    node: ids.NodeName
    uid: str


@dataclass(frozen=True, slots=True)
class Group:
    """Devices of one GPU, and the counters they compete for.

    `name` is that of the GPU's whole face, whether or not it is among them.
    """

    name: ids.DeviceName
    devices: tuple[slices.Device, ...]
    counters: slices.Amounts


@dataclass(frozen=True, slots=True)
class Pool:
    """All that a node publishes, GPU by GPU in PCI order."""

    driver: str
    name: str
    groups: tuple[Group, ...]

    @property
    def devices(self) -> tuple[slices.Device, ...]:
        """Every device, in the order in which it is published."""
        return tuple(device for group in self.groups for device in group.devices)


@dataclass(frozen=True, slots=True)
class PublishTerms:
    """Owner of the pool, and the offering of each GPU, by UUID.

    `plain`: only devices without counters and shares, because the cluster lacks them (D17).
    """

    driver: str
    node: ids.NodeName
    allocator: str
    offerings: Mapping[ids.GpuUuid, faces.Offering]
    plain: bool = False


Taints = Mapping[ids.DeviceName, tuple[slices.Taint, ...]]
"""What is wrong with devices, by name."""


def build_pool(
    inventory: model.Inventory, terms: PublishTerms, taints: Taints
) -> tuple[Pool, tuple[errors.BadInput, ...]]:
    """The pool of a node: every face of its GPUs, tainted by what ails it and as D2 says.

    Beside it, the GPUs that break a limit of the API: they are left out, and hide no other.
    """
    order = tuple(gpu.pci for gpu in inventory.all_gpus)
    groups: list[Group] = []
    refused: list[errors.BadInput] = []
    for gpu in inventory.all_gpus:
        group = _group(gpu, terms, taints, attributes.peer_mask(gpu, order))
        try:
            check(group)
        except errors.BadInput as problem:
            refused.append(problem)
        else:
            groups.append(group)
    shown = tuple(group for group in groups if group.devices)
    return Pool(terms.driver, terms.node, shown), tuple(refused)


def _group(gpu: model.Gpu, terms: PublishTerms, taints: Taints, peers: int) -> Group:
    shown = faces.offered_faces(gpu, terms.offerings.get(gpu.uuid, faces.Offering()))
    if terms.plain:
        shown = tuple(face for face in shown if _is_plain(face))
    name = faces.device_name(gpu.pci)
    devices = tuple(_device(face, terms, taints.get(face.name, ()), peers) for face in shown)
    total = {} if terms.plain else _amounts(counters.gpu_counters(gpu))
    return Group(name, devices, total)


def _is_plain(face: faces.Face) -> bool:
    return isinstance(face, faces.WholeFace) or (
        isinstance(face, faces.MigFace) and face.instance is not None
    )


def _device(
    face: faces.Face, terms: PublishTerms, ailing: tuple[slices.Taint, ...], peers: int
) -> slices.Device:
    consumed = {} if terms.plain else _amounts(face.consumes)
    use = slices.CounterUse(faces.device_name(face.gpu.pci), consumed)
    return slices.Device(
        name=face.name,
        attributes=attributes.face_attributes(face, peers, terms.allocator),
        capacity=_capacity(face),
        taints=(*_own_taints(face, terms.allocator), *ailing),
        allow_multiple=isinstance(face, faces.ShareFace),
        consumes=(use,) if consumed else (),
    )


def _own_taints(face: faces.Face, allocator: str) -> tuple[slices.Taint, ...]:
    if isinstance(face, faces.MonitorFace):
        return (slices.Taint(names.MONITOR_TAINT, "", "NoSchedule"),)
    return allocator_taints(allocator)


def allocator_taints(allocator: str) -> tuple[slices.Taint, ...]:
    """Return the taints that assign a device to an allocator: kube-scheduler's has none (D2)."""
    if allocator == "controller":
        return (slices.Taint(names.ALLOCATOR_TAINT, "controller", "NoSchedule"),)
    return ()


def _capacity(face: faces.Face) -> Mapping[str, capacities.Capacity]:
    match face:
        case faces.ShareFace():
            return _shared(face)
        case faces.MigFace():
            amounts = _engines(face)
            memory: int | None = face.profile.memory_bytes
        case _:
            amounts, memory = {}, face.gpu.memory_bytes
    amounts[names.CAP_COMPUTE] = quantities.from_units(attributes.compute_percent(face))
    if memory is not None:
        amounts[names.CAP_MEMORY] = quantities.from_bytes(memory)
    return {key: capacities.Capacity(amount) for key, amount in amounts.items()}


def _engines(face: faces.MigFace) -> dict[str, quantities.Quantity]:
    has = face.profile.engines
    amounts = {
        names.CAP_MULTIPROCESSORS: has.multiprocessors,
        names.CAP_COPY_ENGINES: has.copy_engines,
        names.CAP_DECODERS: has.decoders,
        names.CAP_ENCODERS: has.encoders,
        names.CAP_JPEG_ENGINES: has.jpeg_engines,
        names.CAP_OFA_ENGINES: has.ofa_engines,
    }
    return {key: quantities.from_units(amount) for key, amount in amounts.items()}


def _shared(face: faces.ShareFace) -> Mapping[str, capacities.Capacity]:
    """Counted out: a request that names no amount takes one share of each (D1)."""
    full = faces.FULL_COMPUTE_PERCENT
    result = {
        names.CAP_COMPUTE: capacities.round_up_to_step(
            full, full // face.shares, 1, quantities.from_units
        ),
        names.CAP_SHARES: capacities.round_up_to_step(face.shares, 1, 1, quantities.from_units),
    }
    if (total := face.memory_bytes) is not None:
        result[names.CAP_MEMORY] = capacities.round_up_to_step(
            total, total // face.shares, _MEMORY_STEP, quantities.from_bytes
        )
    return result


def _amounts(result: counters.Counters) -> slices.Amounts:
    return {name: quantities.from_units(amount) for name, amount in result.items()}


def check(group: Group) -> None:
    """Raise BadInput where a GPU's devices break a limit of the API."""
    _at_most(f"GPU {group.name}", "faces", len(group.devices), MAX_DEVICES)
    _at_most(f"GPU {group.name}", "counters", len(group.counters), MAX_COUNTERS)
    for device in group.devices:
        _check_device(device)


def _check_device(device: slices.Device) -> None:
    path = f"device {device.name}"
    properties = len(device.attributes) + len(device.capacity)
    _at_most(path, "attributes and capacities", properties, MAX_PROPERTIES)
    _at_most(path, "taints", len(device.taints), MAX_TAINTS)
    _at_most(path, "bytes of name", len(device.name.encode()), _MAX_NAME)
    for key, value in device.attributes.items():
        _at_most(f"{path}, attribute {key}", "bytes", len(str(value).encode()), _MAX_STRING)


def _at_most(path: str, subject: str, count: int, most: int) -> None:
    if count > most:
        raise errors.BadInput(path, f"has {count} {subject}", f"at most {most}")


def render(pool: Pool, owner: Owner, generation: int) -> list[slices.Raw]:
    """The slices of a pool; a pool without devices is one empty slice.

    Names are zero-padded, because pools are read in the order of their names (D1).
    """
    sets = [
        slices.render_counter_set(slices.CounterSet(group.name, group.counters))
        for group in pool.groups
        if group.counters
    ]
    bodies: list[slices.Raw] = [
        {"sharedCounters": sets[start : start + MAX_COUNTER_SETS]}
        for start in range(0, len(sets), MAX_COUNTER_SETS)
    ]
    bodies += [
        {"devices": [slices.render_device(device) for device in devices]}
        for devices in _cuts(pool.groups)
    ]
    return [
        _slice_object(pool, owner, (index, len(bodies), generation), body)
        for index, body in enumerate(bodies)
    ]


def _cuts(groups: Sequence[Group]) -> list[list[slices.Device]]:
    """Devices a slice; those of one GPU are never parted."""
    cuts: list[list[slices.Device]] = [[]]
    for group in groups:
        if len(cuts[-1]) + len(group.devices) > MAX_DEVICES:
            cuts.append([])
        cuts[-1].extend(group.devices)
    return cuts


def slice_name(driver: str, node: str, index: int) -> str:
    """`node-a-gpu.ration.dev-00000`: a fixed name, so that a retry meets its own work.

    Of a node whose name leaves no room for that, it has a hash in the place of the name's end.
    """
    rest = f"-{driver}-{index:05d}"
    if len(node) + len(rest) > _MAX_OBJECT_NAME:
        digest = hashlib.sha256(node.encode()).hexdigest()[:_DIGITS]
        node = f"{node[: _MAX_OBJECT_NAME - len(rest) - _DIGITS - 1].rstrip('-.')}-{digest}"
    return f"{node}{rest}"


def _slice_object(
    pool: Pool, owner: Owner, scope: tuple[int, int, int], body: slices.Raw
) -> slices.Raw:
    index, count, generation = scope
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": slice_name(pool.driver, owner.node, index),
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": owner.node,
                    "uid": owner.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "driver": pool.driver,
            "nodeName": owner.node,
            "pool": {"name": pool.name, "generation": generation, "resourceSliceCount": count},
            **body,
        },
    }
