"""Demand for nodes, and the headroom of its queue. Pure values."""

from dataclasses import dataclass
from typing import Protocol

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import topology
from driver.scheduling.queues import resources as queue_resources

_ANYWHERE = topology.Topology()


@dataclass(frozen=True, slots=True)
class NodeDemand:
    """Workloads that are placed together or not at all: a pod, a gang, a Reservation's pods.

    `key` identifies it (`pod/team/train-0`), `queue` is its queue. It is due in `lead_s` seconds: a
    template with a shorter startup is not requested yet. `provisioned_nodes` came for it;
    `has_kept_devices`: the snapshot reserves devices for it (`provisioned_key`).
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
    """Return the key of a Reservation's demand."""
    return f"{RESERVATION}/{key}"


def provisioned_key(demand_key: str) -> ids.Key:
    """Return the holder of devices that were provisioned for a demand: no claim has such a key."""
    return ids.Key(f"brought:{demand_key}")


class Limits(Protocol):
    """Headroom of queues, beyond their current usage."""

    def reset(self) -> None:
        """Drop all that was counted."""
        ...

    def reserve(self, queue: str, taken: queue_resources.Amounts) -> str:
        """Count amounts for a queue; return "" if it may have them, else why not, uncounted."""
        ...


class Unlimited:
    """Headroom without queues."""

    def reset(self) -> None:
        """Do nothing."""

    def reserve(self, _leaf: str, _taken: queue_resources.Amounts) -> str:
        """Allow everything."""
        return ""
