"""Status of a queue: usage, fair share, pending workloads. Pure values."""

from dataclasses import dataclass

from driver.resources import queues
from driver.scheduling.queues import quota, resources


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Status of a queue, its children included.

    `share` and `fair_share` are dominant shares: 1 is the whole fleet; `fleet_gpus` is that fleet's
    GPUs in thousandths. `deserved` is as its spec says, or more if its children deserve more.
    `oldest_wait_s` is the age of the oldest pending workload, None without one; `is_starving`:
    beyond its queue's bound. `average_share` includes the past, None if that does not count,
    `usage_seconds` are its share-seconds.
    """

    usage: resources.Amounts
    share: float
    fair_share: float
    deserved: queues.Amounts
    deserved_share: float
    fleet_gpus: int
    pending: int = 0
    oldest_wait_s: float | None = None
    is_starving: bool = False
    average_share: float | None = None
    usage_seconds: float | None = None

    @property
    def borrowed(self) -> int:
        """Usage beyond the deserved share, in thousandths of GPUs by its dominant share."""
        return max(0, round((self.share - self.deserved_share) * self.fleet_gpus))

    @property
    def fair_gpus(self) -> int:
        """Fair share in thousandths of GPUs."""
        return round(self.fair_share * self.fleet_gpus)


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """A limit that a request exceeds: its bound, the usage and the requested amount.

    Without `is_limit` the bound is the queue's deserved amount.
    """

    queue: str
    bound: quota.Bound
    used: int
    requested: int
    is_limit: bool = True
