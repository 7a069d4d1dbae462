"""ResourceSlices both ways: rendered by the kubelet plugin, parsed by the controller.

`parse(render(x)) == x` for what we publish. Fields of the API that this reader does not weigh are
not dropped silently: a device that carries one says so in `beyond`, and is left alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driver import errors, ids, names
from driver.devices import faces, model
from driver.resources import fields, quantity, selectors

MAX_DEVICES = 64
"""Devices a slice: the limit once one of them carries a taint or consumes counters (api v1)."""
MAX_PROPERTIES = 32
"""Attributes and capacities a device (api v1)."""
_MAX_STRING = 64
_BEYOND = (
    "consumesCounters",
    "bindsToNode",
    "bindingConditions",
    "nodeAllocatableResources",
    "skipNodeOperations",
)


@dataclass(frozen=True, slots=True)
class Taint:
    """A device taint; `added` is filled by the server."""

    key: str
    value: str
    effect: str
    added: str = ""

    @property
    def blocks(self) -> bool:
        """Whether it keeps new claims away: NoExecute as NoSchedule, None not (KEP-5055)."""
        return self.effect in {"NoSchedule", "NoExecute"}


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a slice. `node` is its own node selection; () when the slice decides.

    `beyond` names the fields that this version does not weigh yet.
    """

    name: ids.DeviceName
    attributes: Mapping[str, faces.AttributeValue] = field(default_factory=dict)
    capacity: Mapping[str, quantity.Quantity] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allow_multiple: bool = False
    beyond: tuple[str, ...] = ()

    def tainted_for(self, allocator: str) -> bool:
        """Whether the device is handed to an allocator by D2's taint."""
        return any(
            taint.key == names.ALLOCATOR_TAINT and taint.value == allocator for taint in self.taints
        )


@dataclass(frozen=True, slots=True)
class Slice:
    """One ResourceSlice. Exactly one of `node` and `selector` is set, or `everywhere` is true."""

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    node: ids.NodeName | None
    selector: selectors.NodeSelector | None
    everywhere: bool
    devices: tuple[Device, ...]
    beyond: tuple[str, ...] = ()
    uid: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """The Node that owns the slices: they go when it goes."""

    node: ids.NodeName
    uid: str


@dataclass(frozen=True, slots=True)
class Pool:
    """All that a node publishes: devices in their order, to be cut into slices."""

    driver: str
    name: str
    devices: tuple[Device, ...]


def pool_of(inventory: model.Inventory, driver: str, node: ids.NodeName, allocator: str) -> Pool:
    """The pool of a node: every face of its GPUs, tainted as D2 says.

    Raises:
        BadInput: a device breaks a limit of the API; nothing of it may be published.
    """
    devices = tuple(
        _device_of(face, inventory, allocator) for face in faces.of_inventory(inventory)
    )
    for device in devices:
        _check(device)
    return Pool(driver, node, devices)


def _device_of(face: faces.Face, inventory: model.Inventory, allocator: str) -> Device:
    capacity = {names.CAP_COMPUTE: quantity.of_units(face.compute_percent)}
    if face.memory_bytes is not None:
        capacity[names.CAP_MEMORY] = quantity.of_bytes(face.memory_bytes)
    taints = (Taint(names.ALLOCATOR_TAINT, "controller", "NoSchedule"),)
    return Device(
        name=face.name,
        attributes=faces.attributes(face, inventory, allocator),
        capacity=capacity,
        taints=taints if allocator == "controller" else (),
    )


def _check(device: Device) -> None:
    where = f"device {device.name}"
    count = len(device.attributes) + len(device.capacity)
    if count > MAX_PROPERTIES:
        raise errors.BadInput(
            where, f"has {count} attributes and capacities", f"at most {MAX_PROPERTIES}"
        )
    for key, value in device.attributes.items():
        if len(str(value).encode()) > _MAX_STRING:
            raise errors.BadInput(
                f"{where}, attribute {key}",
                f"{value!s} is too long",
                f"at most {_MAX_STRING} bytes",
            )


def render(pool: Pool, owner: Owner, generation: int) -> list[dict[str, object]]:
    """The slices of a pool, <= 64 devices each; a pool without devices is one empty slice.

    Names are zero-padded, because pools are read in the order of their names (D1).
    """
    cuts: Sequence[tuple[Device, ...]] = [
        pool.devices[start : start + MAX_DEVICES]
        for start in range(0, len(pool.devices), MAX_DEVICES)
    ] or [()]
    return [
        _slice_object(pool, owner, generation, (index, len(cuts), devices))
        for index, devices in enumerate(cuts)
    ]


def slice_name(driver: str, node: str, index: int) -> str:
    """`node-a-gpu.ration.dev-00000`: a fixed name, so that a retry meets its own work."""
    return f"{node}-{driver}-{index:05d}"


def _slice_object(
    pool: Pool, owner: Owner, generation: int, cut: tuple[int, int, tuple[Device, ...]]
) -> dict[str, object]:
    index, count, devices = cut
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
            "devices": [_render_device(device) for device in devices],
        },
    }


def _render_device(device: Device) -> dict[str, object]:
    shown: dict[str, object] = {
        "name": device.name,
        "attributes": {key: _render_value(value) for key, value in device.attributes.items()},
        "capacity": {key: {"value": amount.text} for key, amount in device.capacity.items()},
    }
    if device.taints:
        shown["taints"] = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in device.taints
        ]
    return shown


def _render_value(value: faces.AttributeValue) -> dict[str, object]:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case faces.Version():
            return {"version": value.text}
        case str():
            return {"string": value}


def parse(obj: fields.Raw) -> Slice:
    """Read a ResourceSlice.

    Raises:
        BadInput: a field has another type than the API's.
    """
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    pool = fields.mapping(spec, "pool", "spec")
    node = fields.text(spec, "nodeName", "spec")
    selector = spec.get("nodeSelector")
    return Slice(
        name=fields.required_text(meta, "name", "metadata"),
        driver=fields.required_text(spec, "driver", "spec"),
        pool=fields.required_text(pool, "name", "spec.pool"),
        generation=fields.integer(pool, "generation", "spec.pool"),
        slice_count=fields.integer(pool, "resourceSliceCount", "spec.pool", default=1),
        node=ids.NodeName(node) if node else None,
        selector=selectors.parse(fields.mapping(spec, "nodeSelector")) if selector else None,
        everywhere=fields.flag(spec, "allNodes", "spec"),
        devices=tuple(_parse_device(d, at) for at, d in fields.objects(spec, "devices", "spec")),
        beyond=tuple(key for key in ("perDeviceNodeSelection",) if spec.get(key)),
        uid=fields.text(meta, "uid", "metadata"),
        version=fields.text(meta, "resourceVersion", "metadata"),
    )


def _parse_device(obj: fields.Raw, at: str) -> Device:
    attributes = fields.mapping(obj, "attributes", at)
    capacity = fields.mapping(obj, "capacity", at)
    values: dict[str, faces.AttributeValue] = {}
    beyond = [key for key in _BEYOND if obj.get(key)]
    for key in attributes:
        value = _parse_value(fields.mapping(attributes, key, at))
        if value is None:
            beyond.append(f"attributes[{key}]")
        else:
            values[key] = value
    return Device(
        name=ids.DeviceName(fields.required_text(obj, "name", at)),
        attributes=values,
        capacity={
            key: quantity.parse(fields.mapping(capacity, key, at).get("value"), f"{at}.capacity")
            for key in capacity
        },
        taints=tuple(
            _parse_taint(taint, path) for path, taint in fields.objects(obj, "taints", at)
        ),
        allow_multiple=fields.flag(obj, "allowMultipleAllocations", at),
        beyond=tuple(beyond),
    )


def _parse_value(obj: fields.Raw) -> faces.AttributeValue | None:
    """An attribute's value; None for the list kinds, which are weighed later."""
    match dict(obj):
        case {"bool": bool(value)}:
            return value
        case {"int": int(value)}:
            return value
        case {"string": str(value)}:
            return value
        case {"version": str(value)}:
            return faces.Version(value)
        case _:
            return None


def _parse_taint(obj: fields.Raw, at: str) -> Taint:
    return Taint(
        key=fields.required_text(obj, "key", at),
        value=fields.text(obj, "value", at),
        effect=fields.text(obj, "effect", at),
        added=fields.text(obj, "timeAdded", at),
    )
