"""Kinds of node that an autoscaler can bring, as documents: what is there and on its way. Pure."""

from collections.abc import Iterator

from driver import ids, names
from driver.resources.dra import slices
from driver.scheduling.provisioning import node_template, placeholder, shape_status
from driver.scheduling.reports import model, read_model
from driver.scheduling.snapshot import node_usage


def every(found: read_model.Seen) -> tuple[model.Shape, ...]:
    """Those of the document, in its order; none where there is no document."""
    known = found.objects.offer
    if known is None:
        return ()
    coming: dict[str, list[model.Coming]] = {one.name: [] for one in known.templates}
    for asked in _asked(found, known):
        coming.setdefault(asked.shape, []).append(_coming(asked))
    return tuple(_of(found, known, one, tuple(coming[one.name])) for one in known.templates)


def _asked(
    found: read_model.Seen, known: shape_status.ShapeStatus
) -> Iterator[placeholder.Placeholder]:
    """Nodes that are asked for, the oldest first."""
    there = found.objects.pods.values()
    mine = (pod for pod in there if node_usage.is_placeholder(pod, known.namespace))
    live = (pod for pod in mine if not pod.deleting and not pod.finished)
    return map(placeholder.Placeholder, sorted(live, key=lambda one: (one.created, one.name)))


def _coming(asked: placeholder.Placeholder) -> model.Coming:
    return model.Coming(wanted_for=asked.demand, since=asked.pod.created, node=asked.node or "")


def _of(
    found: read_model.Seen,
    known: shape_status.ShapeStatus,
    one: node_template.NodeTemplate,
    coming: tuple[model.Coming, ...],
) -> model.Shape:
    arriving = {asked.node for asked in coming}
    live = [
        node.name
        for node in found.objects.nodes.values()
        if one.matches(node) and node.name not in arriving
    ]
    whole = [device for part in one.resource_slices for device in part.devices if _is_gpu(device)]
    products = {str(device.attributes.get(names.ATTR_PRODUCT, "")) for device in whole}
    return model.Shape(
        name=one.name,
        labels=dict(sorted(one.labels.items())),
        gpus=len(whole),
        product=", ".join(sorted(products - {""})),
        cost=one.cost,
        most=one.max_in_flight,
        startup_seconds=one.startup_s,
        measured=one.name in known.measured,
        learned=one.is_observed,
        nodes=len(live),
        gpus_there=sum(_gpus_on(found, name) for name in live),
        coming=coming,
        resting=known.paused.get(one.name, ""),
    )


def _gpus_on(found: read_model.Seen, name: ids.NodeName) -> int:
    pool = found.pools.get(name)
    return len(pool.gpus) if pool is not None else 0


def _is_gpu(device: slices.Device) -> bool:
    return device.attributes.get(names.ATTR_TYPE) == names.TYPE_GPU
