"""Queues, fleets and workloads for tests of whose turn it is."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from driver.resources import queues
from driver.scheduling.queues import engine, order
from driver.scheduling.queues import resources as queue_resources
from tests.support import snapshots

GIB = 1 << 30
NOON = 1_800_000_000.0
"""A moment, in seconds since the epoch."""


def some(gpus: float, product: str = "") -> queue_resources.Amounts:
    """Return the amounts of whole GPUs like those of `snapshots.fleet`."""
    count = round(gpus * queue_resources.FULL)
    models = {product: count} if product and count else {}
    return queue_resources.Amounts(count, round(gpus * 80 * GIB), round(gpus * 100), models)


def named(gpus: float | None = None, **more: Any) -> queues.Amounts:
    """Amounts as a queue names them."""
    return queues.Amounts(None if gpus is None else round(gpus * queue_resources.FULL), **more)


def queue(
    name: str,
    parent: str = "",
    *,
    weight: int = 1,
    deserved: float | queues.Amounts | None = None,
    limit: float | queues.Amounts | None = None,
    **more: Any,
) -> queues.Queue:
    """A queue; plain numbers are GPUs."""
    due = deserved if isinstance(deserved, queues.Amounts) else named(deserved)
    most = limit if isinstance(limit, queues.Amounts) else named(limit)
    return queues.Queue(name, parent=parent, weight=weight, deserved=due, limit=most, **more)


def members(*namespaces: str, **labels: str) -> tuple[queues.Member, ...]:
    """The field of that name."""
    return tuple(queues.Member(namespace, labels) for namespace in namespaces)


def an_engine(gpus: int, *results: queues.Queue) -> engine.QueueEngine:
    """With a fleet of so many GPUs."""
    queue_engine = engine.QueueEngine(snapshots.DRIVER)
    for result in results:
        queue_engine.set_queue(result.name, result)
    queue_engine.refresh(snapshots.fleet({"node-a": gpus}))
    return queue_engine


def a_workload(
    key: str, leaf: str = "", gpus: float = 1, *, since: float = 0.0, priority: int = 0
) -> order.PendingEntry:
    """One that waits `since` so many seconds after noon."""
    return order.PendingEntry(key, leaf, priority, NOON + since, some(gpus))


def serve(
    queue_engine: engine.QueueEngine, line: Iterable[order.PendingEntry], gpus: float
) -> list[str]:
    """Give GPUs to what waits, in order, until they are given out: the keys."""
    served: list[str] = []
    left = round(gpus * queue_resources.FULL)
    for pending_entry in line:
        if pending_entry.requested.gpus > left:
            break
        left -= pending_entry.requested.gpus
        queue_engine.charge(pending_entry.key, pending_entry.queue, pending_entry.requested)
        served.append(str(pending_entry.key))
        if not left:
            break
    return served


def line_of(
    queue_engine: engine.QueueEngine, *waiting: order.PendingEntry, at_s: float = 0.0
) -> list[str]:
    """The keys in order, when nothing is placed meanwhile."""
    return [
        str(pending_entry.key)
        for pending_entry in queue_engine.schedule_order(waiting, NOON + at_s)
    ]


def in_gpus(shares: Mapping[str, Fraction], gpus: int) -> dict[str, Fraction]:
    """Shares of a fleet, in GPUs; the implicit queue left out where it has none."""
    return {name: share * gpus for name, share in shares.items() if name or share}
