"""`NodeShapes`: the kinds of node that an autoscaler can bring, as a document of the controller's.

    apiVersion: resource.ration.dev/v1alpha1
    kind: NodeShapes
    ttl: 20m
    maxInFlight: 16
    shapes:
    - name: h100-8
      labels: {node.kubernetes.io/instance-type: p5.48xlarge}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
      gpus: 8
      product: NVIDIA H100 80GB HBM3
      memory: 80Gi
      allocatable: {cpu: "190", memory: 1900Gi}
      cost: 8
      startup: 6m

A shape is known by its labels: a node that has them all is one of it, and what a live node has
counts for more than what is written here.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field

from driver import names
from driver.api import crd, validation

_MOST_SHAPES = 32
_MOST_GPUS = 64
MOST_NODES = 1000
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_RESERVED = ("kubernetes.io", "k8s.io", "karpenter.sh")
"""Domains of which an autoscaler puts only labels on new nodes that it knows."""
_OPEN = ("node.kubernetes.io", "node-restriction.kubernetes.io", "kops.k8s.io")
_WELL_KNOWN = frozenset(
    {
        *("kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type"),
        *("topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
        *("karpenter.sh/capacity-type", "karpenter.sh/nodepool"),
    }
)
_QUANTITY = r"^[0-9]{1,18}(\.[0-9]{1,9})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"
Quantity = Annotated[
    str,
    Field(pattern=_QUANTITY),
    pydantic.BeforeValidator(crd.parse_amount),
    pydantic.WithJsonSchema({"x-kubernetes-int-or-string": True, "pattern": _QUANTITY}),
]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class _InFlight(_Strict):
    """A document with a bound on nodes in flight, which had another name."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _refuse_former_name(cls, document: object) -> object:
        if isinstance(document, Mapping) and "most" in document:
            raise ValueError("most has been renamed: use maxInFlight")
        return document


class Taint(_Strict):
    """A taint that nodes of the shape have for good; one that goes at their start is left out."""

    key: Annotated[str, Field(min_length=1, max_length=317, description="Its key.")]
    value: Annotated[str, Field(max_length=63, description="Its value.")] = ""
    effect: Annotated[
        Literal["NoSchedule", "NoExecute", "PreferNoSchedule"], Field(description="Its effect.")
    ]


class NodeShape(_InFlight):
    """A kind of node; what is learned from a live one counts for more than what is said here."""

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            max_length=40,
            description="Name of the shape in events and metrics.",
        ),
    ]
    labels: Annotated[
        dict[str, str],
        Field(
            min_length=1,
            max_length=16,
            description="Labels that its nodes have from the first moment on, and no others' have.",
        ),
    ]
    taints: Annotated[
        tuple[Taint, ...],
        Field(
            max_length=16,
            description="Taints that its nodes have for good, not those that go at their start.",
        ),
    ] = ()
    gpus: Annotated[int, Field(ge=1, le=_MOST_GPUS, description="How many GPUs a node of it has.")]
    product: Annotated[
        str,
        Field(
            max_length=64, description="Product name of its GPUs, as in the attribute productName."
        ),
    ] = ""
    memory: Annotated[
        crd.Memory | None, Field(description="Memory of each GPU, a quantity such as 80Gi.")
    ] = None
    allocatable: Annotated[
        dict[str, Quantity],
        Field(
            max_length=32,
            description="Allocatable resources of a node, such as cpu and memory; unnamed "
            "resources are not checked.",
        ),
    ] = {}
    cost: Annotated[
        Annotated[float, Field(ge=0, le=1_000_000)] | None,
        Field(description="Relative cost of a node. Default: its number of GPUs."),
    ] = None
    startup: Annotated[
        crd.Duration,
        Field(
            description="Expected time from requesting a node until it has published its GPUs, "
            "until it is measured."
        ),
    ] = "10m"
    maxInFlight: Annotated[  # noqa: N815 - the API's spelling
        int,
        Field(
            ge=1,
            le=MOST_NODES,
            description="Maximum number of requested nodes of the shape in flight.",
        ),
    ] = MOST_NODES

    @pydantic.field_validator("labels")
    @classmethod
    def _known_labels(cls, entries: dict[str, str]) -> dict[str, str]:
        for key, value in entries.items():
            wrong = _wrong_label(key, value)
            if wrong:
                raise ValueError(f"{key}: {wrong}")
        return entries

    @property
    def price(self) -> float:
        """Return the cost of a node of this shape, relative to the other shapes."""
        return float(self.gpus) if self.cost is None else self.cost


class NodeShapes(_InFlight):
    """The kinds of node that an autoscaler can bring: what the controller may ask for."""

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - the API's spelling
    kind: Literal["NodeShapes"] = "NodeShapes"
    ttl: Annotated[
        crd.Duration,
        Field(
            description="Time after which a requested node that has not published all its GPUs is "
            "given up."
        ),
    ] = "20m"
    maxInFlight: Annotated[  # noqa: N815 - the API's spelling
        int,
        Field(
            ge=1,
            le=MOST_NODES,
            description="Maximum number of requested nodes in flight, of all shapes together.",
        ),
    ] = 16
    shapes: Annotated[
        tuple[NodeShape, ...],
        Field(
            max_length=_MOST_SHAPES,
            description="Node shapes. A node belongs to the shape whose labels it has.",
        ),
    ] = ()

    @pydantic.model_validator(mode="after")
    def _told_apart(self) -> Self:
        for index, node_shape in enumerate(self.shapes):
            for other in self.shapes[:index]:
                if node_shape.name == other.name:
                    raise ValueError(f"shapes.{index}.name: there are two shapes {node_shape.name}")
                if node_shape.labels == other.labels:
                    raise ValueError(
                        f"shapes.{index}.labels: a node with these is of shape {other.name} too; "
                        "expected labels that tell them apart"
                    )
        return self


def read(document: Mapping[str, object], path: str) -> NodeShapes:
    """Read the document.

    Raises:
        BadInput: what is wrong, at which path under `path`.
    """
    return validation.read(NodeShapes, document, path)


def _wrong_label(key: str, value: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if (slash and not _PREFIX.fullmatch(prefix)) or not _NAME.fullmatch(name):
        return "is no label's key; expected [prefix/]name (RFC 1123)"
    if not _VALUE.fullmatch(value):
        return f"{value!r} is no label's value"
    if key == "kubernetes.io/hostname":
        return "is another on each node; expected what all nodes of the shape have"
    if prefix == names.GROUP and key != names.ALLOCATOR_LABEL:
        return "is a label that Ration writes; expected one that the node group or NodePool gives"
    if _is_reserved(prefix) and key not in _WELL_KNOWN:
        return (
            "is unknown: autoscalers put no such label of that domain on nodes; expected one of "
            f"{', '.join(sorted(_WELL_KNOWN))}, or a domain of your own"
        )
    return ""


def _is_reserved(prefix: str) -> bool:
    if any(_within(prefix, domain) for domain in _OPEN):
        return False
    return any(_within(prefix, domain) for domain in _RESERVED)


def _within(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")
