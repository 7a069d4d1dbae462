"""A kind of node that an autoscaler can bring, and what one of them will be like. Pure.

What it publishes is what the last live node of it published (`learning`), or else what its document
says: its GPUs as a whole and as shares, for of their partitions a document says nothing.
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
"""Of what the document does not say: it is not what keeps a pod away."""
_DEFAULT_PODS = 110
"""As kubelets have it by default."""
_UNKNOWN_ATTRIBUTES = frozenset(
    {
        *(names.ATTR_UUID, names.ATTR_PARENT_UUID, names.ATTR_BRAND, names.ATTR_ARCHITECTURE),
        *(names.ATTR_CUDA_CAPABILITY, names.ATTR_CUDA_DRIVER_VERSION, names.ATTR_PCI_BUS_ID),
    }
)
"""What a document does not tell: who asks it finds no such device before a node was seen."""
_DEFAULT_ALLOCATABLE = {
    "cpu": _UNLIMITED,
    "memory": _UNLIMITED,
    "ephemeral-storage": _UNLIMITED,
    "pods": _DEFAULT_PODS,
}


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """`published` are the slices of a node of it, whatever its name.

    `starts_s` is how long one takes from being asked for to being complete, `most` how many are on
    their way at once. `allocatable` is in each resource's own unit, as a Node's; `seen`: learned
    from a live node.
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
        """Whether a node is one of it, by its labels."""
        return self.labels.items() <= node.labels.items()

    def build_node(self, name: ids.NodeName) -> nodes.Node:
        """One of it, as it will be."""
        return nodes.Node(
            name=name,
            uid="",
            labels=self.labels,
            taints=self.taints,
            allocatable=self.allocatable,
        )

    def build_slices(self, name: ids.NodeName) -> tuple[slices.Slice, ...]:
        """What it will publish."""
        return tuple(
            replace(
                one,
                name=f"{name}-{place:05d}",
                pool=name,
                reach=node_selectors.DeviceReach(node=name),
            )
            for place, one in enumerate(self.resource_slices)
        )


def from_document(one: node_shapes.NodeShape, driver: str) -> NodeTemplate:
    """As its document says."""
    return NodeTemplate(
        name=one.name,
        labels=one.labels,
        taints=tuple(nodes.NodeTaint(t.key, t.value, t.effect) for t in one.taints),
        allocatable={
            **_DEFAULT_ALLOCATABLE,
            **nodes.parse_amounts(one.allocatable, f"{one.name}.allocatable"),
        },
        resource_slices=_document_slices(one, driver),
        cost=one.price,
        startup_s=crd.seconds(one.startup),
        max_in_flight=one.most,
    )


def _document_slices(one: node_shapes.NodeShape, driver: str) -> tuple[slices.Slice, ...]:
    memory = quantities.parse(one.memory).units if one.memory is not None else None
    gpus = tuple(_template_gpu(one.product, memory, place) for place in range(one.gpus))
    node = ids.NodeName(one.name)
    terms = slice_builder.PublishTerms(driver, node, "controller", {})
    pool, _ = slice_builder.build_pool(model.Inventory(gpus), terms, {})
    rendered = slice_builder.render(pool, slice_builder.Owner(node, ""), 1)
    return without_attributes(map(slices.parse, rendered), _UNKNOWN_ATTRIBUTES)


def without_attributes(
    found: Iterable[slices.Slice], attributes: Collection[str]
) -> tuple[slices.Slice, ...]:
    """Slices whose devices say nothing of some attributes."""

    def bare(device: slices.Device) -> slices.Device:
        kept = {key: value for key, value in device.attributes.items() if key not in attributes}
        return replace(device, attributes=kept)

    return tuple(replace(one, devices=tuple(map(bare, one.devices))) for one in found)


def _template_gpu(product: str, memory: int | None, place: int) -> model.Gpu:
    """Of a machine that nobody has seen: what is not known of it is left out, or no version."""
    address = f"0000:{place:02x}:00.0"
    return model.Gpu(
        uuid=ids.GpuUuid(f"GPU-{place}"),
        pci=ids.PciAddress(address),
        minor=place,
        product=product,
        brand="",
        architecture="",
        cuda_capability=(0, 0),
        driver_version="",
        cuda_driver_version=(0, 0),
        index=place,
        memory_bytes=memory,
    )
