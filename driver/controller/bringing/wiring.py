"""Puts the parts of nodes on demand together."""

from dataclasses import dataclass

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
from driver.controller.provisioning import terms
from driver.controller.queueing import engine
from driver.controller.waiting import placing
from driver.kube import workqueue


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
