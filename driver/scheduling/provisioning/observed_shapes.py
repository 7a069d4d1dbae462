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
_MOST_STARTS = 5
_MOST_BYTES = 16 << 20
"""Of what is kept of a shape, unzipped: a node of eight GPUs with all faces has half a megabyte."""
_UNREADABLE = (
    *(zlib.error, RecursionError, OverflowError),
    *(ValueError, TypeError, KeyError, AttributeError),
)
_UUIDS = frozenset({names.ATTR_UUID, names.ATTR_PARENT_UUID})
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
"""Domains of taints that come and go with a node's life."""
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})
_ANONYMOUS: Mapping[str, Any] = {
    "name": "",
    "pool": "",
    "generation": 1,
    "reach": node_selectors.NOWHERE,
}
_NEAR = 0.1
"""Memory that differs by no more is the same: documents say 80Gi, GPUs a little less."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Of the last live node: slices, what it had for pods, and how long the last ones took, in s.

    `gpus` is how many it had.
    """

    gpus: int = 0
    published: tuple[slices.Slice, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)
    starts_s: tuple[float, ...] = ()

    def started(self, took_s: float) -> "Seen":
        """One more took so long."""
        return replace(self, starts_s=(*self.starts_s, round(took_s, 1))[-_MOST_STARTS:])


def applied(one: node_template.Shape, seen: Seen) -> node_template.Shape:
    """A shape as its nodes were; the longest of the last starts counts."""
    known = replace(one, starts_s=max(seen.starts_s)) if seen.starts_s else one
    if not seen.gpus:
        return known
    return replace(known, published=seen.published, allocatable=seen.allocatable, seen=True)


def gpus_of(found: pools.Pool) -> int:
    """How many GPUs a pool has."""
    return len(pool_layout.get_layout(found).idle_gpus)


def of_node(before: Seen, node: nodes.Node, found: pools.Pool, there: Iterable[pods.Pod]) -> Seen:
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
        gpus=gpus_of(found),
        published=tuple(map(_healthy, node_template.without(found.slices, _UUIDS))),
        allocatable=left,
    )


def _healthy(one: slices.Slice) -> slices.Slice:
    """Of a new node: what ails this one, and who owns it, does not come with it."""
    devices = tuple(
        replace(device, taints=tuple(t for t in device.taints if t.key in names.OWN_TAINTS))
        for device in one.devices
    )
    return replace(one, devices=devices, uid="", version="", **_ANONYMOUS)


def contradictions(
    place: int, said: node_shapes.NodeShape, node: nodes.Node, found: pools.Pool
) -> Iterator[tuple[str, str]]:
    """Where a document is wrong about a live node of its shape: the field's path, and the words."""
    at, here = f"shapes.{place}", f"node {node.name}"
    there = gpus_of(found)
    if there != said.gpus:
        yield f"{at}.gpus", f"says {said.gpus}, and {here} publishes {there}"
    whole = [d for d in found.devices.values() if d.attributes.get(names.ATTR_PRODUCT)]
    products = {str(device.attributes[names.ATTR_PRODUCT]) for device in whole}
    if said.product and products and said.product not in products:
        yield f"{at}.product", f"says {said.product!r}, and {here} has {', '.join(products)}"
    yield from _of_memory(f"{at}.memory", said, here, whole)
    for name, text in said.allocatable.items():
        amount = nodes.amounts({name: text}, f"{at}.allocatable")[name]
        has = node.allocatable.get(name, 0)
        if amount > has:
            unit = "m" if name == "cpu" else ""
            yield f"{at}.allocatable.{name}", f"says {text}, and {here} has {has}{unit}"
    tolerated = {(one.key, one.effect) for one in said.taints}
    for taint in node.taints:
        lasting = taint.effect in _BLOCKING and not taint.key.startswith(_PASSING)
        if lasting and (taint.key, taint.effect) not in tolerated:
            yield f"{at}.taints", f"lacks {taint.key}:{taint.effect}, which {here} has"


def _of_memory(
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
    if has and abs(meant - has) > _NEAR * has:
        yield at, f"says {said.memory}, and GPUs of {here} have {quantities.of_bytes(has).text}"


# As it is kept.


def packed(seen: Seen) -> bytes:
    """As it is kept; the same for the same."""
    document = {
        "version": _VERSION,
        "gpus": seen.gpus,
        "allocatable": dict(sorted(seen.allocatable.items())),
        "startsSeconds": list(seen.starts_s),
        "slices": [_rendered(one) for one in seen.published],
    }
    return gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0)


def _rendered(one: slices.Slice) -> Mapping[str, Any]:
    return {
        "driver": one.driver,
        "sharedCounters": [slices.render_counter_set(shared) for shared in one.counter_sets],
        "devices": [slices.render_device(device) for device in one.devices],
        "pool": {"resourceSliceCount": one.slice_count},
    }


def unpacked(found: bytes, where: str) -> Seen:
    """Read what was kept.

    Raises:
        BadInput: it is not what `packed` writes; a later version's is not read.
    """
    try:
        document = json.loads(_unzipped(found))
        if document["version"] != _VERSION:
            raise errors.BadInput(where, f"is of version {document['version']}", str(_VERSION))
        return Seen(
            gpus=int(document["gpus"]),
            published=tuple(_parsed(one) for one in document["slices"]),
            allocatable={str(k): int(v) for k, v in document["allocatable"].items()},
            starts_s=tuple(float(one) for one in document["startsSeconds"]),
        )
    except _UNREADABLE as error:
        raise errors.BadInput(
            where, f"cannot be read: {error}", "what was kept of a shape"
        ) from error


def _unzipped(found: bytes) -> bytes:
    """At most _MOST_BYTES: a text that a ConfigMap has room for can say gigabytes."""
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    plain = unzip.decompress(found, _MOST_BYTES)
    if not unzip.eof:
        raise ValueError(f"it is cut off, or longer than {_MOST_BYTES} bytes")
    return plain


def _parsed(one: Mapping[str, Any]) -> slices.Slice:
    spec = {**one, "nodeName": "seen", "pool": {"name": "", "generation": 1, **one["pool"]}}
    # The API knows no empty name of a pool; ours is given when the shape is (`Shape.slices_of`).
    spec["pool"]["name"] = "seen"
    kept = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    read = slices.parse({**kept, "metadata": {"name": "seen"}, "spec": spec})
    return replace(read, **_ANONYMOUS)
