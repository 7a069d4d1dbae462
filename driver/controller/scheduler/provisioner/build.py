"""Builds the provisioner."""

from collections.abc import Callable
from dataclasses import dataclass

from driver import ids
from driver.controller.commit import write_pool
from driver.controller.informers import snapshot_updater
from driver.controller.scheduler import results as scheduler_results
from driver.controller.scheduler import state
from driver.controller.scheduler.provisioner import (
    arrived_capacity,
    node_requests,
    pending_demand,
    provisioner,
    queue_headroom,
    reporter,
    shape_catalog,
)
from driver.kube import workqueue
from driver.resources.core import pods
from driver.scheduling.allocator import settings
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.queues import engine
from driver.scheduling.snapshot import node_usage

PutPod = Callable[[ids.Key, pods.Pod | None], None]


@dataclass(frozen=True, slots=True)
class ProvisionerInputs:
    """Collaborators of the provisioner."""

    context: state.SchedulerContext
    tools: write_pool.WriteDeps
    items: workqueue.WorkQueue[write_pool.WorkItem]
    engine: engine.QueueEngine
    results: scheduler_results.ResultHandler
    demand: pending_demand.PendingDemand
    arrived: arrived_capacity.ArrivedCapacity


def ignoring_placeholders(
    put: PutPod, how: provisioning_settings.ProvisionerSettings | None
) -> PutPod:
    """Forward pod updates except placeholder pods, which are never victims."""
    if how is None:
        return put

    def put_others(key: ids.Key, pod: pods.Pod | None) -> None:
        asks = pod is not None and node_usage.is_placeholder(pod, how.namespace)
        put(key, None if asks else pod)

    return put_others


def build_provisioner(
    around: ProvisionerInputs,
    to: snapshot_updater.SnapshotUpdater,
    deciding: settings.Settings,
    how: provisioning_settings.ProvisionerSettings,
    driver: str,
) -> provisioner.Provisioner:
    """Return the provisioner, registered for the pods and nodes it depends on."""
    world, tools = around.context, around.tools
    shapes = shape_catalog.ShapeCatalog(world, tools, how, driver)
    flying = node_requests.NodeRequests(world, tools, around.items, how, shapes)
    hands = provisioner.ProvisionerDeps(
        shapes,
        flying,
        around.demand,
        around.arrived,
        reporter.ProvisioningReporter(world, tools, around.results, around.demand),
        queue_headroom.QueueHeadroom(around.engine),
    )
    built = provisioner.Provisioner(world, hands, deciding, how)
    to.register("placeholder", (world.stores.pods, flying.set_pod))
    to.register("brought", (world.stores.nodes, built.put_node))
    return built
