"""How a queue stands: what it has, what is fair, what waits. Pure values."""

from dataclasses import dataclass

from driver.resources import queues
from driver.scheduling.queues import quota, resources


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Of a queue, its children included.

    `share` and `fair` are dominant shares: 1 is the whole fleet; `whole` is that fleet's GPUs in
    thousandths. `deserved` is as its spec says, or more where its children deserve more. `oldest_s`
    is how long the oldest workload waits, None without one; `starving`: beyond its queue's bound.
    `past` is its average share with the past, None where that does not count, `past_s` the
    share-seconds of it.
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
        """What it has beyond what it deserves, in thousandths of GPUs by its dominant share."""
        return max(0, round((self.share - self.deserved_share) * self.fleet_gpus))

    @property
    def fair_gpus(self) -> int:
        """Its fair share in thousandths of GPUs."""
        return round(self.fair_share * self.fleet_gpus)


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """The limit of a queue is in the way: what it bounds, how much is used of it and was asked.

    Without `borrowing` the bound is what the queue deserves.
    """

    queue: str
    bound: quota.Bound
    used: int
    requested: int
    is_limit: bool = True
