"""What waits for a node, and what its queue may have. Pure values."""

from dataclasses import dataclass
from typing import Protocol

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import topology
from driver.scheduling.queues import resources as queue_resources

_ANYWHERE = topology.Topology()


@dataclass(frozen=True, slots=True)
class NodeDemand:
    """Workloads that are placed together or not at all: a pod, a gang, what a Reservation is for.

    `key` is what it is known by (`pod/team/train-0`), `leaf` its queue. It is due in `lead_s`
    seconds: a shape that takes less time is not asked for yet. `brought` are nodes that came for
    it; `kept`: devices are kept for it in the view (`kept_by`).
    """

    key: str
    workloads: tuple[allocator_types.Workload, ...]
    topology_request: topology.Topology = _ANYWHERE
    queue: str = ""
    lead_s: float = 0.0
    provisioned_nodes: frozenset[ids.NodeName] = frozenset()
    has_kept_devices: bool = False


RESERVATION = "reservation"


def reservation_key(key: ids.Key) -> str:
    """The key of what a Reservation waits for."""
    return f"{RESERVATION}/{key}"


def provisioned_key(wish: str) -> ids.Key:
    """What devices are kept by in a view that came for a wish: no claim has such a key."""
    return ids.Key(f"brought:{wish}")


class Limits(Protocol):
    """What queues may have, beyond what they have now."""

    def reset(self) -> None:
        """Nothing was taken yet."""
        ...

    def reserve(self, leaf: str, taken: queue_resources.Amounts) -> str:
        """Count so much more for a queue: "" where it may have it, else why not, and it has not."""
        ...


class Unlimited:
    """No queues."""

    def reset(self) -> None:
        """Nothing to do."""

    def reserve(self, _leaf: str, _taken: queue_resources.Amounts) -> str:
        """Anything."""
        return ""
