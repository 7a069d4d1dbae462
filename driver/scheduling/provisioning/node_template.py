"""Node template: what a node that an autoscaler can create will be like. Pure.

Its slices are those of the last live node of the shape (`observed_shapes`), or else follow from its
document: whole GPUs and shares, for a document does not describe partitions.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from driver import ids, names
from driver.api import crd, node_shapes
from driver.devices import model
from driver.resources import quantities
from driver.resources.core import node_selectors, nodes
from driver.resources.dra import slices
from driver.resources.publish import slice_builder

_UNLIMITED = 1 << 60
"""Amount of a resource that the document does not name: it rejects no pod."""
_DEFAULT_PODS = 110
"""Default of the kubelet."""
_UNKNOWN_ATTRIBUTES = frozenset(
    {
        *(names.ATTR_UUID, names.ATTR_PARENT_UUID, names.ATTR_BRAND, names.ATTR_ARCHITECTURE),
        *(names.ATTR_CUDA_CAPABILITY, names.ATTR_CUDA_DRIVER_VERSION, names.ATTR_PCI_BUS_ID),
    }
)
"""Attributes unknown to a document: selectors on them match nothing before a node was observed."""
_DEFAULT_ALLOCATABLE = {
    "cpu": _UNLIMITED,
    "memory": _UNLIMITED,
    "ephemeral-storage": _UNLIMITED,
    "pods": _DEFAULT_PODS,
}


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A kind of node. `resource_slices` are those of its nodes, whatever the name.

    `startup_s` is the time from request to a complete node, `max_in_flight` limits nodes in flight.
    `allocatable` is in each resource's own unit, as a Node's; `is_observed`: learned from a live
    node.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[nodes.NodeTaint, ...]
    allocatable: Mapping[str, int]
    resource_slices: tuple[slices.Slice, ...]
    cost: float
    startup_s: float
    max_in_flight: int
    is_observed: bool = False

    def matches(self, node: nodes.Node) -> bool:
        """Return whether a node is of this template, by its labels."""
        return self.labels.items() <= node.labels.items()

    def build_node(self, name: ids.NodeName) -> nodes.Node:
        """Return a node of it, as it will be."""
        return nodes.Node(
            name=name,
            uid="",
            labels=self.labels,
            taints=self.taints,
            allocatable=self.allocatable,
        )

    def build_slices(self, name: ids.NodeName) -> tuple[slices.Slice, ...]:
        """Return the slices that a node of it will publish."""
        return tuple(
            replace(
                resource_slice,
                name=f"{name}-{index:05d}",
                pool=name,
                reach=node_selectors.DeviceReach(node=name),
            )
            for index, resource_slice in enumerate(self.resource_slices)
        )


def from_document(shape: node_shapes.NodeShape, driver: str) -> NodeTemplate:
    """Return the template of a document."""
    return NodeTemplate(
        name=shape.name,
        labels=shape.labels,
        taints=tuple(nodes.NodeTaint(t.key, t.value, t.effect) for t in shape.taints),
        allocatable={
            **_DEFAULT_ALLOCATABLE,
            **nodes.parse_amounts(shape.allocatable, f"{shape.name}.allocatable"),
        },
        resource_slices=_document_slices(shape, driver),
        cost=shape.price,
        startup_s=crd.seconds(shape.startup),
        max_in_flight=shape.maxInFlight,
    )


def _document_slices(shape: node_shapes.NodeShape, driver: str) -> tuple[slices.Slice, ...]:
    memory = quantities.parse(shape.memory).units if shape.memory is not None else None
    gpus = tuple(_template_gpu(shape.product, memory, index) for index in range(shape.gpus))
    node = ids.NodeName(shape.name)
    terms = slice_builder.PublishTerms(driver, node, "controller", {})
    pool, _ = slice_builder.build_pool(model.Inventory(gpus), terms, {})
    rendered = slice_builder.render(pool, slice_builder.Owner(node, ""), 1)
    return without_attributes(map(slices.parse, rendered), _UNKNOWN_ATTRIBUTES)


def without_attributes(
    resource_slices: Iterable[slices.Slice], attributes: Collection[str]
) -> tuple[slices.Slice, ...]:
    """Return slices whose devices lack some attributes."""

    def bare(device: slices.Device) -> slices.Device:
        attributes_kept = {
            key: value for key, value in device.attributes.items() if key not in attributes
        }
        return replace(device, attributes=attributes_kept)

    return tuple(
        replace(resource_slice, devices=tuple(map(bare, resource_slice.devices)))
        for resource_slice in resource_slices
    )


def _template_gpu(product: str, memory: int | None, index: int) -> model.Gpu:
    """Return a GPU of an unobserved machine: unknown fields are empty, or no version."""
    address = f"0000:{index:02x}:00.0"
    return model.Gpu(
        uuid=ids.GpuUuid(f"GPU-{index}"),
        pci=ids.PciAddress(address),
        minor=index,
        product=product,
        brand="",
        architecture="",
        cuda_capability=(0, 0),
        driver_version="",
        cuda_driver_version=(0, 0),
        index=index,
        memory_bytes=memory,
    )
