"""Where a job that does not fit now will start soonest, by counts of whole GPUs. Pure.

What ends is known: in a simulation every job says how long it lasts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from driver import ids


class Ending(NamedTuple):
    """So many GPUs of a node are free from a moment on."""

    at: float
    node: ids.NodeName
    gpus: int


@dataclass(frozen=True, slots=True)
class Kept:
    """From `at` on these nodes have what is asked; what ends before may use them until then."""

    at: float
    nodes: frozenset[ids.NodeName]


def soonest(
    free: Mapping[ids.NodeName, int], ending: Iterable[Ending], pods: int, gpus: int
) -> Kept | None:
    """For so many pods of so many GPUs each; None: never, whatever ends.

    `free` are GPUs that nobody uses now. Of the nodes that would do the emptiest are kept.
    """
    left = dict(free)
    for one in sorted(ending):
        left[one.node] = left.get(one.node, 0) + one.gpus
        if sum(there // gpus for there in left.values()) >= pods:
            return Kept(one.at, _emptiest(left, pods, gpus))
    return None


def _emptiest(left: Mapping[ids.NodeName, int], pods: int, gpus: int) -> frozenset[ids.NodeName]:
    found: set[ids.NodeName] = set()
    for name in sorted(left, key=lambda one: (-left[one], one)):
        if pods <= 0:
            break
        found.add(name)
        pods -= left[name] // gpus
    return frozenset(found)
