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
    "Deserved share of the queue in GPUs, by its dominant resource; at least the sum of "
    "its children.",
    _OF,
)
LIMIT: Final = Family(
    "dra_gpu_queue_limit_gpus",
    "GPU limit of the queue; absent without one.",
    _OF,
)
ALLOCATED: Final = Family(
    "dra_gpu_queue_allocated_gpus",
    "GPUs allocated to the queue and its children; a part of a GPU counts as its fraction.",
    _OF,
)
MEMORY: Final = Family(
    "dra_gpu_queue_allocated_memory_bytes", "GPU memory allocated to the queue.", _OF
)
FAIR: Final = Family(
    "dra_gpu_queue_fair_share_gpus",
    "Fair share of the queue in GPUs, given what all queues use and request now.",
    _OF,
)
SHARE: Final = Family(
    "dra_gpu_queue_dominant_share_ratio",
    "Dominant share of the queue: the largest fraction that it uses of all GPUs, their "
    "memory or their compute.",
    _OF,
)
BORROWED: Final = Family(
    "dra_gpu_queue_borrowed_gpus", "GPUs that the queue uses beyond its deserved share.", _OF
)
WAITING: Final = Family(
    "dra_gpu_queue_waiting_workloads", "Pending pods and gangs of the queue.", _OF
)
OLDEST: Final = Family(
    "dra_gpu_queue_oldest_wait_seconds",
    "Waiting time of the oldest pending workload of the queue; 0 without one.",
    _OF,
)
STARVING: Final = Family(
    "dra_gpu_queue_starving",
    "1 while a workload of the queue has waited longer than the starvationBound of the queue.",
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
