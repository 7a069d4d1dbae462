"""NICs, and the ResourceSlice and the DeviceClass that the driver publishes of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver import names
from tests.support.builders import objects

Raw = dict[str, Any]
DRIVER = "nic.example.com"


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface card as the test describes it.

    `shared` lets several claims have it, each with a part of its `capacity`: an amount, or all of
    a DeviceCapacity. `attributes` are further ones of the driver's own, `taints` are the API's.
    """

    name: str
    pcie_root: str | None = None
    numa_node: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    capacity: Mapping[str, str | Raw] = field(default_factory=dict)
    shared: bool = False
    taints: tuple[Raw, ...] = ()

    def render(self) -> Raw:
        """Return the NIC as a device of a ResourceSlice."""
        standard = {names.ATTR_PCIE_ROOT: self.pcie_root, names.ATTR_NUMA_NODE: self.numa_node}
        values = {**standard, **self.attributes}
        fields = {
            "attributes": {k: objects.a_value(v) for k, v in values.items() if v is not None},
            "capacity": {
                key: {"value": amount} if isinstance(amount, str) else amount
                for key, amount in self.capacity.items()
            },
            "allowMultipleAllocations": self.shared,
            "taints": list(self.taints),
        }
        return {"name": self.name, **{key: value for key, value in fields.items() if value}}


@dataclass(frozen=True, slots=True)
class Pool:
    """At most 64 NICs of the node of the pool's name, or with `reach` attached over the network.

    `reach` is a part of a ResourceSlice's spec: `allNodes`, or a `nodeSelector`.
    """

    name: str
    nics: tuple[Nic, ...]
    reach: Mapping[str, Any] = field(default_factory=dict)

    def slice(self, driver: str = DRIVER, generation: int = 1) -> Raw:
        """Return the only ResourceSlice of the pool."""
        reach = self.reach or {"nodeName": self.name}
        return {
            "metadata": {"name": f"{self.name}-{driver}"},
            "spec": {
                "driver": driver,
                "pool": {"name": self.name, "generation": generation, "resourceSliceCount": 1},
                "devices": [nic.render() for nic in self.nics],
                **reach,
            },
        }


def device_class(driver: str = DRIVER) -> Raw:
    """Return the DeviceClass of all NICs, which has the driver's name."""
    return {**objects.a_class(driver, f"device.driver == '{driver}'"), "metadata": {"name": driver}}


def beside(slices: Iterable[Raw], **more: Any) -> tuple[Nic, ...]:
    """Return a NIC for each PCIe root of published devices, on the root's NUMA node.

    They are `nic-0` and on, in the order of the roots; `more` are further fields of each.
    """
    numa_nodes: dict[str, int | None] = {}
    for device in (device for entry in slices for device in entry["spec"].get("devices", ())):
        attributes = device.get("attributes", {})
        if root := attributes.get(names.ATTR_PCIE_ROOT, {}).get("string"):
            numa_nodes[root] = attributes.get(names.ATTR_NUMA_NODE, {}).get("int")
    return tuple(
        Nic(f"nic-{number}", root, numa_node, **more)
        for number, (root, numa_node) in enumerate(sorted(numa_nodes.items()))
    )
