"""Puts the parts of nodes on demand together."""

from collections.abc import Callable
from dataclasses import dataclass

from driver import ids
from driver.controller import feed, state, writers
from driver.controller.allocation import settings
from driver.controller.bringing import (
    arriving,
    bringing,
    keeping,
    known,
    limits,
    saying,
    wishing,
)
from driver.controller.provisioning import placeholder, terms
from driver.controller.queueing import engine
from driver.controller.waiting import placing
from driver.kube import workqueue
from driver.resources import pods

PutPod = Callable[[ids.Key, pods.Pod | None], None]


@dataclass(frozen=True, slots=True)
class Around:
    """What of the decider they work with."""

    world: state.State
    tools: writers.Tools
    items: workqueue.WorkQueue[writers.Item]
    fair: engine.Engine
    placer: placing.Placing
    waiting: wishing.Wishing
    keeping: keeping.Keeping


def but(put: PutPod, how: terms.OnDemand | None) -> PutPod:
    """Hears of pods but those that ask for nodes: they go by themselves, and for nobody."""
    if how is None:
        return put

    def put_others(key: ids.Key, pod: pods.Pod | None) -> None:
        asks = pod is not None and placeholder.is_one(pod, how.namespace)
        put(key, None if asks else pod)

    return put_others


def bring(
    around: Around, to: feed.Feed, deciding: settings.Settings, how: terms.OnDemand, driver: str
) -> bringing.Bringing:
    """Nodes on demand, fed with the pods and nodes that matter for it."""
    world, tools = around.world, around.tools
    shapes = known.Known(world, tools, how, driver)
    flying = arriving.Arriving(world, tools, around.items, how, shapes)
    hands = bringing.Hands(
        shapes,
        flying,
        around.waiting,
        around.keeping,
        saying.Saying(world, tools, around.placer, around.waiting),
        limits.Limits(around.fair),
    )
    made = bringing.Bringing(world, hands, deciding, how)
    to.follow("placeholder", (world.stores.pods, flying.put))
    to.follow("brought", (world.stores.nodes, made.put_node))
    return made
