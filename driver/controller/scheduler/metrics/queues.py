"""How queues stand, as figures: a queue that is gone has none. Pure."""

from collections.abc import Mapping
from typing import Final

from driver.resources import queues
from driver.runtime.metrics.families import Family, Figures
from driver.scheduling.queues import quota, status_types
from driver.scheduling.queues import resources as queue_resources

NO_QUEUE: Final = "-"
"""The label of pods that no queue takes; no Queue can be called so."""
_OF: Final = ("queue",)
DESERVED: Final = Family(
    "dra_gpu_queue_deserved_gpus",
    "What the queue deserves in GPUs, by its dominant share; a parent no less than its children.",
    _OF,
)
LIMIT: Final = Family(
    "dra_gpu_queue_limit_gpus",
    "GPUs that the queue never exceeds; none where its limit names no GPUs.",
    _OF,
)
ALLOCATED: Final = Family(
    "dra_gpu_queue_allocated_gpus",
    "GPUs that the queue and its children have; a part of one counts as the part that it is.",
    _OF,
)
MEMORY: Final = Family(
    "dra_gpu_queue_allocated_memory_bytes", "Memory of GPUs that the queue has.", _OF
)
FAIR: Final = Family(
    "dra_gpu_queue_fair_share_gpus",
    "The queue's fair share in GPUs, by all that queues use and wait for now.",
    _OF,
)
SHARE: Final = Family(
    "dra_gpu_queue_dominant_share_ratio",
    "The largest part that the queue has of all GPUs, all their memory or all their compute.",
    _OF,
)
BORROWED: Final = Family(
    "dra_gpu_queue_borrowed_gpus", "What the queue has beyond what it deserves, in GPUs.", _OF
)
WAITING: Final = Family(
    "dra_gpu_queue_waiting_workloads", "Pods and gangs of the queue that wait.", _OF
)
OLDEST: Final = Family(
    "dra_gpu_queue_oldest_wait_seconds",
    "How long the oldest workload of the queue waits; 0 where none does.",
    _OF,
)
STARVING: Final = Family(
    "dra_gpu_queue_starving",
    "1 while a workload of the queue waits for longer than its starvationBound.",
    _OF,
)
FAMILIES: Final = (
    *(DESERVED, LIMIT, ALLOCATED, MEMORY, FAIR, SHARE, BORROWED, WAITING, OLDEST, STARVING),
)


def queue_values(
    found: Mapping[str, status_types.QueueStatus], known: Mapping[str, queues.Queue]
) -> Figures:
    """The figures of the queues that stand; `known` are they by name."""
    made: dict[str, dict[tuple[str, ...], float]] = {one.name: {} for one in FAMILIES}
    for name, one in found.items():
        labels = (name or NO_QUEUE,)
        for family, value in _values(one):
            made[family.name][labels] = value
        limit = quota.effective_limit(known[name]).gpus if name in known else None
        if limit is not None:
            made[LIMIT.name][labels] = limit / queue_resources.FULL
    return made


def _values(one: status_types.QueueStatus) -> tuple[tuple[Family, float], ...]:
    return (
        (DESERVED, one.deserved_share * one.fleet_gpus / queue_resources.FULL),
        (ALLOCATED, one.usage.gpus / queue_resources.FULL),
        (MEMORY, one.usage.memory),
        (FAIR, one.fair_gpus / queue_resources.FULL),
        (SHARE, one.share),
        (BORROWED, one.borrowed / queue_resources.FULL),
        (WAITING, one.pending),
        (OLDEST, one.oldest_wait_s or 0.0),
        (STARVING, one.is_starving),
    )
