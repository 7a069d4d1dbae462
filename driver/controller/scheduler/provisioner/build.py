"""Puts the parts of nodes on demand together."""

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
class Around:
    """What of the decider they work with."""

    world: state.State
    tools: write_pool.Tools
    items: workqueue.WorkQueue[write_pool.Item]
    fair: engine.QueueEngine
    placer: scheduler_results.Placing
    waiting: pending_demand.Wishing
    keeping: arrived_capacity.Keeping


def but(put: PutPod, how: provisioning_settings.ProvisionerSettings | None) -> PutPod:
    """Hears of pods but those that ask for nodes: they go by themselves, and for nobody."""
    if how is None:
        return put

    def put_others(key: ids.Key, pod: pods.Pod | None) -> None:
        asks = pod is not None and node_usage.is_placeholder(pod, how.namespace)
        put(key, None if asks else pod)

    return put_others


def bring(
    around: Around,
    to: snapshot_updater.Feed,
    deciding: settings.Settings,
    how: provisioning_settings.ProvisionerSettings,
    driver: str,
) -> provisioner.Bringing:
    """Nodes on demand, fed with the pods and nodes that matter for it."""
    world, tools = around.world, around.tools
    shapes = shape_catalog.Known(world, tools, how, driver)
    flying = node_requests.Arriving(world, tools, around.items, how, shapes)
    hands = provisioner.Hands(
        shapes,
        flying,
        around.waiting,
        around.keeping,
        reporter.Saying(world, tools, around.placer, around.waiting),
        queue_headroom.Limits(around.fair),
    )
    made = provisioner.Bringing(world, hands, deciding, how)
    to.follow("placeholder", (world.stores.pods, flying.put))
    to.follow("brought", (world.stores.nodes, made.put_node))
    return made
