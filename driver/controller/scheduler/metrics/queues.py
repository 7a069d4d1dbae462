"""Values of queues; a deleted queue has none. Pure."""

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
    queue_status: Mapping[str, status_types.QueueStatus], by_name: Mapping[str, queues.Queue]
) -> Figures:
    """Return the values of queues with a standing; `by_name` are the Queues."""
    values: dict[str, dict[tuple[str, ...], float]] = {item.name: {} for item in FAMILIES}
    for name, item in queue_status.items():
        labels = (name or NO_QUEUE,)
        for family, value in _values(item):
            values[family.name][labels] = value
        limit = quota.effective_limit(by_name[name]).gpus if name in by_name else None
        if limit is not None:
            values[LIMIT.name][labels] = limit / queue_resources.FULL
    return values


def _values(queue_status: status_types.QueueStatus) -> tuple[tuple[Family, float], ...]:
    return (
        (DESERVED, queue_status.deserved_share * queue_status.fleet_gpus / queue_resources.FULL),
        (ALLOCATED, queue_status.usage.gpus / queue_resources.FULL),
        (MEMORY, queue_status.usage.memory),
        (FAIR, queue_status.fair_gpus / queue_resources.FULL),
        (SHARE, queue_status.share),
        (BORROWED, queue_status.borrowed / queue_resources.FULL),
        (WAITING, queue_status.pending),
        (OLDEST, queue_status.oldest_wait_s or 0.0),
        (STARVING, queue_status.is_starving),
    )
