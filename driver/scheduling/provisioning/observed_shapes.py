"""Observed properties of a shape's live nodes, kept for when there are none any more. Pure.

They are stored in the API, so that a fleet scaled down to zero is provisioned by them, whoever
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
"""Limit of a stored shape, decompressed: a node of eight GPUs with all faces has 0.5 MB."""
_UNREADABLE = (
    *(zlib.error, RecursionError, OverflowError),
    *(ValueError, TypeError, KeyError, AttributeError),
)
_UUIDS = frozenset({names.ATTR_UUID, names.ATTR_PARENT_UUID})
_TRANSIENT_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
"""Domains of transient taints in a node's life cycle."""
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})
_ANONYMOUS: Mapping[str, Any] = {
    "name": "",
    "pool": "",
    "generation": 1,
    "reach": node_selectors.NOWHERE,
}
_MEMORY_TOLERANCE = 0.1
"""Tolerated relative difference of memory: documents say 80Gi, GPUs a little less."""


@dataclass(frozen=True, slots=True)
class ObservedShape:
    """Slices, allocatable for pods, and the last startup times in s, of the last live node.

    `gpus` is its number of GPUs.
    """

    gpus: int = 0
    resource_slices: tuple[slices.Slice, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)
    startup_s: tuple[float, ...] = ()

    def with_startup(self, took_s: float) -> "ObservedShape":
        """Return it with one more startup time in seconds."""
        return replace(self, startup_s=(*self.startup_s, round(took_s, 1))[-_MAX_STARTS:])


def apply_observed(
    template: node_template.NodeTemplate, observed: ObservedShape
) -> node_template.NodeTemplate:
    """Return a template with observed properties; the longest of the last startups counts."""
    updated = (
        replace(template, startup_s=max(observed.startup_s)) if observed.startup_s else template
    )
    if not observed.gpus:
        return updated
    return replace(
        updated,
        resource_slices=observed.resource_slices,
        allocatable=observed.allocatable,
        is_observed=True,
    )


def gpu_count(pool: pools.Pool) -> int:
    """Return the number of GPUs of a pool."""
    return len(pool_layout.get_layout(pool).idle_gpus)


def observe_node(
    observed: ObservedShape, node: nodes.Node, pool: pools.Pool, node_pods: Iterable[pods.Pod]
) -> ObservedShape:
    """Return the observation of a node with a complete pool, less its DaemonSets' requests."""
    daemon_usage: dict[str, int] = {"pods": 0}
    for pod in node_pods:
        if pod.owner is not None and pod.owner.kind == "DaemonSet":
            daemon_usage["pods"] += 1
            for name, amount in pod.requests.items():
                daemon_usage[name] = daemon_usage.get(name, 0) + amount
    allocatable = {
        name: amount - daemon_usage.get(name, 0) for name, amount in node.allocatable.items()
    }
    return replace(
        observed,
        gpus=gpu_count(pool),
        resource_slices=tuple(
            map(_anonymize, node_template.without_attributes(pool.slices, _UUIDS))
        ),
        allocatable=allocatable,
    )


def _anonymize(resource_slice: slices.Slice) -> slices.Slice:
    """Return the slice of a new node: without faults and owner of this one."""
    devices = tuple(
        replace(device, taints=tuple(t for t in device.taints if t.key in names.OWN_TAINTS))
        for device in resource_slice.devices
    )
    return replace(resource_slice, devices=devices, uid="", version="", **_ANONYMOUS)


def document_errors(
    index: int, shape: node_shapes.NodeShape, node: nodes.Node, pool: pools.Pool
) -> Iterator[tuple[str, str]]:
    """Yield the errors of a document about a live node of its shape: field path and message."""
    path, node_text = f"shapes.{index}", f"node {node.name}"
    gpus = gpu_count(pool)
    if gpus != shape.gpus:
        yield f"{path}.gpus", f"says {shape.gpus}, and {node_text} publishes {gpus}"
    whole = [d for d in pool.devices.values() if d.attributes.get(names.ATTR_PRODUCT)]
    products = {str(device.attributes[names.ATTR_PRODUCT]) for device in whole}
    if shape.product and products and shape.product not in products:
        yield (
            f"{path}.product",
            f"says {shape.product!r}, and {node_text} has {', '.join(products)}",
        )
    yield from _memory_errors(f"{path}.memory", shape, node_text, whole)
    for name, text in shape.allocatable.items():
        amount = nodes.parse_amounts({name: text}, f"{path}.allocatable")[name]
        amount_there = node.allocatable.get(name, 0)
        if amount > amount_there:
            unit = "m" if name == "cpu" else ""
            yield (
                f"{path}.allocatable.{name}",
                f"says {text}, and {node_text} has {amount_there}{unit}",
            )
    tolerated = {(toleration.key, toleration.effect) for toleration in shape.taints}
    for taint in node.taints:
        lasting = taint.effect in _BLOCKING and not taint.key.startswith(_TRANSIENT_TAINTS)
        if lasting and (taint.key, taint.effect) not in tolerated:
            yield f"{path}.taints", f"lacks {taint.key}:{taint.effect}, which {node_text} has"


def _memory_errors(
    path: str, shape: node_shapes.NodeShape, node_text: str, whole: Iterable[slices.Device]
) -> Iterator[tuple[str, str]]:
    observed_bytes = max(
        (
            device.capacity[names.CAP_MEMORY].value.units
            for device in whole
            if device.attributes.get(names.ATTR_TYPE) == names.TYPE_GPU
            and names.CAP_MEMORY in device.capacity
        ),
        default=0,
    )
    declared_bytes = (
        quantities.parse(shape.memory).units if shape.memory is not None else observed_bytes
    )
    if observed_bytes and abs(declared_bytes - observed_bytes) > _MEMORY_TOLERANCE * observed_bytes:
        observed = quantities.from_bytes(observed_bytes).text
        yield path, f"says {shape.memory}, and GPUs of {node_text} have {observed}"


# Storage format.


def encode(observed: ObservedShape) -> bytes:
    """Return the stored form; equal for equal values."""
    document = {
        "version": _VERSION,
        "gpus": observed.gpus,
        "allocatable": dict(sorted(observed.allocatable.items())),
        "startsSeconds": list(observed.startup_s),
        "slices": [_render_slice(resource_slice) for resource_slice in observed.resource_slices],
    }
    return gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0)


def _render_slice(resource_slice: slices.Slice) -> Mapping[str, Any]:
    return {
        "driver": resource_slice.driver,
        "sharedCounters": [
            slices.render_counter_set(shared) for shared in resource_slice.counter_sets
        ],
        "devices": [slices.render_device(device) for device in resource_slice.devices],
        "pool": {"resourceSliceCount": resource_slice.slice_count},
    }


def decode(data: bytes, path: str) -> ObservedShape:
    """Parse the stored form.

    Raises:
        BadInput: it is not what `encode` writes; later versions are not read.
    """
    try:
        document = json.loads(_unzip(data))
        if document["version"] != _VERSION:
            raise errors.BadInput(path, f"is of version {document['version']}", str(_VERSION))
        return ObservedShape(
            gpus=int(document["gpus"]),
            resource_slices=tuple(_parse_slice(entry) for entry in document["slices"]),
            allocatable={str(k): int(v) for k, v in document["allocatable"].items()},
            startup_s=tuple(float(entry) for entry in document["startsSeconds"]),
        )
    except _UNREADABLE as error:
        raise errors.BadInput(
            path, f"cannot be read: {error}", "what was kept of a shape"
        ) from error


def _unzip(data: bytes) -> bytes:
    """Decompress at most _MAX_BYTES: a text that fits a ConfigMap can expand to gigabytes."""
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    plain = unzip.decompress(data, _MAX_BYTES)
    if not unzip.eof:
        raise ValueError(f"it is cut off, or longer than {_MAX_BYTES} bytes")
    return plain


def _parse_slice(document: Mapping[str, Any]) -> slices.Slice:
    spec = {
        **document,
        "nodeName": "seen",
        "pool": {"name": "", "generation": 1, **document["pool"]},
    }
    # The API has no empty pool names; `NodeTemplate.build_slices` sets the name.
    spec["pool"]["name"] = "seen"
    type_meta = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    read = slices.parse({**type_meta, "metadata": {"name": "seen"}, "spec": spec})
    return replace(read, **_ANONYMOUS)
