"""Earliest start of a job that does not fit now, by counts of whole GPUs. Pure.

End times are known: in a simulation every job has a duration.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from driver import ids


class GpuRelease(NamedTuple):
    """Release of a node's GPUs at a time."""

    at: float
    node: ids.NodeName
    gpus: int


@dataclass(frozen=True, slots=True)
class EarliestStart:
    """Start at `at` on these nodes; what ends before may use them until then."""

    at: float
    nodes: frozenset[ids.NodeName]


def find_earliest(
    free: Mapping[ids.NodeName, int], ending: Iterable[GpuRelease], pods: int, gpus: int
) -> EarliestStart | None:
    """Return the earliest start of these pods with as many GPUs each; None: never.

    `free` are unused GPUs. Of the sufficient nodes the emptiest are reserved.
    """
    left = dict(free)
    for gpu_release in sorted(ending):
        left[gpu_release.node] = left.get(gpu_release.node, 0) + gpu_release.gpus
        if sum(free_now // gpus for free_now in left.values()) >= pods:
            return EarliestStart(gpu_release.at, _emptiest(left, pods, gpus))
    return None


def _emptiest(left: Mapping[ids.NodeName, int], pods: int, gpus: int) -> frozenset[ids.NodeName]:
    result: set[ids.NodeName] = set()
    for name in sorted(left, key=lambda item: (-left[item], item)):
        if pods <= 0:
            break
        result.add(name)
        pods -= left[name] // gpus
    return frozenset(result)
