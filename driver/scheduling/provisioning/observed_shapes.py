"""What a shape's live nodes are like, kept for when there are none any more. Pure.

It is kept in the API, so that a fleet that went down to nothing comes up again by what was, whoever
leads then: per shape a compressed text, for a node of eight GPUs publishes hundreds of devices.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from driver import errors, names
from driver.api import node_shapes
from driver.resources import quantities
from driver.resources.core import node_selectors, nodes, pods
from driver.resources.dra import pools, slices
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.provisioning import node_template

_VERSION = 1
_MAX_STARTS = 5
_MAX_BYTES = 16 << 20
"""Of what is kept of a shape, unzipped: a node of eight GPUs with all faces has half a megabyte."""
_UNREADABLE = (
    *(zlib.error, RecursionError, OverflowError),
    *(ValueError, TypeError, KeyError, AttributeError),
)
_UUIDS = frozenset({names.ATTR_UUID, names.ATTR_PARENT_UUID})
_TRANSIENT_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
"""Domains of taints that come and go with a node's life."""
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})
_ANONYMOUS: Mapping[str, Any] = {
    "name": "",
    "pool": "",
    "generation": 1,
    "reach": node_selectors.NOWHERE,
}
_MEMORY_TOLERANCE = 0.1
"""Memory that differs by no more is the same: documents say 80Gi, GPUs a little less."""


@dataclass(frozen=True, slots=True)
class ObservedShape:
    """Of the last live node: slices, what it had for pods, and how long the last ones took, in s.

    `gpus` is how many it had.
    """

    gpus: int = 0
    resource_slices: tuple[slices.Slice, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)
    startup_s: tuple[float, ...] = ()

    def with_startup(self, took_s: float) -> "ObservedShape":
        """One more took so long."""
        return replace(self, startup_s=(*self.startup_s, round(took_s, 1))[-_MAX_STARTS:])


def apply_observed(
    one: node_template.NodeTemplate, seen: ObservedShape
) -> node_template.NodeTemplate:
    """A shape as its nodes were; the longest of the last starts counts."""
    known = replace(one, startup_s=max(seen.startup_s)) if seen.startup_s else one
    if not seen.gpus:
        return known
    return replace(
        known, resource_slices=seen.resource_slices, allocatable=seen.allocatable, is_observed=True
    )


def gpu_count(found: pools.Pool) -> int:
    """How many GPUs a pool has."""
    return len(pool_layout.get_layout(found).idle_gpus)


def observe_node(
    before: ObservedShape, node: nodes.Node, found: pools.Pool, there: Iterable[pods.Pod]
) -> ObservedShape:
    """What a node with a complete pool tells, less what its DaemonSets take, as on every node."""
    taken: dict[str, int] = {"pods": 0}
    for pod in there:
        if pod.owner is not None and pod.owner.kind == "DaemonSet":
            taken["pods"] += 1
            for name, amount in pod.requests.items():
                taken[name] = taken.get(name, 0) + amount
    left = {name: amount - taken.get(name, 0) for name, amount in node.allocatable.items()}
    return replace(
        before,
        gpus=gpu_count(found),
        resource_slices=tuple(
            map(_anonymize, node_template.without_attributes(found.slices, _UUIDS))
        ),
        allocatable=left,
    )


def _anonymize(one: slices.Slice) -> slices.Slice:
    """Of a new node: what ails this one, and who owns it, does not come with it."""
    devices = tuple(
        replace(device, taints=tuple(t for t in device.taints if t.key in names.OWN_TAINTS))
        for device in one.devices
    )
    return replace(one, devices=devices, uid="", version="", **_ANONYMOUS)


def document_errors(
    place: int, said: node_shapes.NodeShape, node: nodes.Node, found: pools.Pool
) -> Iterator[tuple[str, str]]:
    """Where a document is wrong about a live node of its shape: the field's path, and the words."""
    at, here = f"shapes.{place}", f"node {node.name}"
    there = gpu_count(found)
    if there != said.gpus:
        yield f"{at}.gpus", f"says {said.gpus}, and {here} publishes {there}"
    whole = [d for d in found.devices.values() if d.attributes.get(names.ATTR_PRODUCT)]
    products = {str(device.attributes[names.ATTR_PRODUCT]) for device in whole}
    if said.product and products and said.product not in products:
        yield f"{at}.product", f"says {said.product!r}, and {here} has {', '.join(products)}"
    yield from _memory_errors(f"{at}.memory", said, here, whole)
    for name, text in said.allocatable.items():
        amount = nodes.parse_amounts({name: text}, f"{at}.allocatable")[name]
        has = node.allocatable.get(name, 0)
        if amount > has:
            unit = "m" if name == "cpu" else ""
            yield f"{at}.allocatable.{name}", f"says {text}, and {here} has {has}{unit}"
    tolerated = {(one.key, one.effect) for one in said.taints}
    for taint in node.taints:
        lasting = taint.effect in _BLOCKING and not taint.key.startswith(_TRANSIENT_TAINTS)
        if lasting and (taint.key, taint.effect) not in tolerated:
            yield f"{at}.taints", f"lacks {taint.key}:{taint.effect}, which {here} has"


def _memory_errors(
    at: str, said: node_shapes.NodeShape, here: str, whole: Iterable[slices.Device]
) -> Iterator[tuple[str, str]]:
    has = max(
        (
            device.capacity[names.CAP_MEMORY].value.units
            for device in whole
            if device.attributes.get(names.ATTR_TYPE) == names.TYPE_GPU
            and names.CAP_MEMORY in device.capacity
        ),
        default=0,
    )
    meant = quantities.parse(said.memory).units if said.memory is not None else has
    if has and abs(meant - has) > _MEMORY_TOLERANCE * has:
        yield at, f"says {said.memory}, and GPUs of {here} have {quantities.from_bytes(has).text}"


# As it is kept.


def encode(seen: ObservedShape) -> bytes:
    """As it is kept; the same for the same."""
    document = {
        "version": _VERSION,
        "gpus": seen.gpus,
        "allocatable": dict(sorted(seen.allocatable.items())),
        "startsSeconds": list(seen.startup_s),
        "slices": [_render_slice(one) for one in seen.resource_slices],
    }
    return gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0)


def _render_slice(one: slices.Slice) -> Mapping[str, Any]:
    return {
        "driver": one.driver,
        "sharedCounters": [slices.render_counter_set(shared) for shared in one.counter_sets],
        "devices": [slices.render_device(device) for device in one.devices],
        "pool": {"resourceSliceCount": one.slice_count},
    }


def decode(found: bytes, where: str) -> ObservedShape:
    """Read what was kept.

    Raises:
        BadInput: it is not what `packed` writes; a later version's is not read.
    """
    try:
        document = json.loads(_unzip(found))
        if document["version"] != _VERSION:
            raise errors.BadInput(where, f"is of version {document['version']}", str(_VERSION))
        return ObservedShape(
            gpus=int(document["gpus"]),
            resource_slices=tuple(_parse_slice(one) for one in document["slices"]),
            allocatable={str(k): int(v) for k, v in document["allocatable"].items()},
            startup_s=tuple(float(one) for one in document["startsSeconds"]),
        )
    except _UNREADABLE as error:
        raise errors.BadInput(
            where, f"cannot be read: {error}", "what was kept of a shape"
        ) from error


def _unzip(found: bytes) -> bytes:
    """At most _MOST_BYTES: a text that a ConfigMap has room for can say gigabytes."""
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    plain = unzip.decompress(found, _MAX_BYTES)
    if not unzip.eof:
        raise ValueError(f"it is cut off, or longer than {_MAX_BYTES} bytes")
    return plain


def _parse_slice(one: Mapping[str, Any]) -> slices.Slice:
    spec = {**one, "nodeName": "seen", "pool": {"name": "", "generation": 1, **one["pool"]}}
    # The API knows no empty name of a pool; ours is given when the shape is (`Shape.slices_of`).
    spec["pool"]["name"] = "seen"
    kept = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    read = slices.parse({**kept, "metadata": {"name": "seen"}, "spec": spec})
    return replace(read, **_ANONYMOUS)
