"""Shapes of nodes that an autoscaler can create, as documents. Pure."""

from collections.abc import Iterator

from driver import ids, names
from driver.resources.dra import slices
from driver.scheduling.provisioning import node_template, placeholder, shape_status
from driver.scheduling.reports import model, read_model
from driver.scheduling.snapshot import node_usage


def shape_documents(cluster: read_model.ClusterModel) -> tuple[model.Shape, ...]:
    """Return the shapes of the document, in order; none without a document."""
    status = cluster.objects.shapes
    if status is None:
        return ()
    coming: dict[str, list[model.Coming]] = {template.name: [] for template in status.templates}
    for requested_node in _requested_nodes(cluster, status):
        coming.setdefault(requested_node.shape, []).append(_coming_document(requested_node))
    return tuple(
        _shape_document(cluster, status, template, tuple(coming[template.name]))
        for template in status.templates
    )


def _requested_nodes(
    cluster: read_model.ClusterModel, status: shape_status.ShapeStatus
) -> Iterator[placeholder.Placeholder]:
    """Yield requested nodes, the oldest first."""
    all_pods = cluster.objects.pods.values()
    placeholders = (pod for pod in all_pods if node_usage.is_placeholder(pod, status.namespace))
    live = (pod for pod in placeholders if not pod.deleting and not pod.finished)
    return map(placeholder.Placeholder, sorted(live, key=lambda pod: (pod.created, pod.name)))


def _coming_document(requested_node: placeholder.Placeholder) -> model.Coming:
    return model.Coming(
        wanted_for=requested_node.demand,
        since=requested_node.pod.created,
        node=requested_node.node or "",
    )


def _shape_document(
    cluster: read_model.ClusterModel,
    status: shape_status.ShapeStatus,
    template: node_template.NodeTemplate,
    coming: tuple[model.Coming, ...],
) -> model.Shape:
    arriving = {arriving_node.node for arriving_node in coming}
    live = [
        node.name
        for node in cluster.objects.nodes.values()
        if template.matches(node) and node.name not in arriving
    ]
    whole = [
        device for part in template.resource_slices for device in part.devices if _is_gpu(device)
    ]
    products = {str(device.attributes.get(names.ATTR_PRODUCT, "")) for device in whole}
    return model.Shape(
        name=template.name,
        labels=dict(sorted(template.labels.items())),
        gpus=len(whole),
        product=", ".join(sorted(products - {""})),
        cost=template.cost,
        max_in_flight=template.max_in_flight,
        startup_seconds=template.startup_s,
        measured=template.name in status.measured,
        learned=template.is_observed,
        nodes=len(live),
        gpus_there=sum(_gpu_count(cluster, name) for name in live),
        coming=coming,
        resting=status.paused.get(template.name, ""),
    )


def _gpu_count(cluster: read_model.ClusterModel, name: ids.NodeName) -> int:
    pool = cluster.pools.get(name)
    return len(pool.gpus) if pool is not None else 0


def _is_gpu(device: slices.Device) -> bool:
    return device.attributes.get(names.ATTR_TYPE) == names.TYPE_GPU
