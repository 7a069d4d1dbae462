"""Where a job that does not fit now will start soonest, by counts of whole GPUs. Pure.

What ends is known: in a simulation every job says how long it lasts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from driver import ids


class GpuRelease(NamedTuple):
    """So many GPUs of a node are free from a moment on."""

    at: float
    node: ids.NodeName
    gpus: int


@dataclass(frozen=True, slots=True)
class EarliestStart:
    """From `at` on these nodes have what is asked; what ends before may use them until then."""

    at: float
    nodes: frozenset[ids.NodeName]


def find_earliest(
    free: Mapping[ids.NodeName, int], ending: Iterable[GpuRelease], pods: int, gpus: int
) -> EarliestStart | None:
    """For so many pods of so many GPUs each; None: never, whatever ends.

    `free` are GPUs that nobody uses now. Of the nodes that would do the emptiest are kept.
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
