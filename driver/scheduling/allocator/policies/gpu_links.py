"""How well the GPUs of a node are connected, pair by pair, and which are interchangeable. Pure.

Weights follow published ratios of bandwidth (NV-14): under one PCIe root 1, across roots 0.53,
across NUMA nodes about half of that again; NVLink is several times PCIe.
"""

import functools
import itertools

from driver.scheduling.allocator.policies import base

NVLINK = 100
SAME_ROOT, SAME_NUMA, ACROSS_NUMA = 30, 16, 8
BEST_PAIR = NVLINK + SAME_ROOT
"""The most that a pair can weigh."""
_MAX_CACHED = 1024
Weights = tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=_MAX_CACHED)
def pair_weights(of: base.NodeTopology) -> Weights:
    """By pair: NVLink, and beside it how near the two are for the host."""
    order = range(len(of.locations))
    return tuple(tuple(_pair_weight(of, i, j) for j in order) for i in order)


def _pair_weight(of: base.NodeTopology, i: int, j: int) -> int:
    if i == j:
        return 0
    one, other = of.locations[i], of.locations[j]
    linked = NVLINK if one.peers >> j & 1 or other.peers >> i & 1 else 0
    if one.pcie_root and one.pcie_root == other.pcie_root:
        return linked + SAME_ROOT
    if base.UNKNOWN_NUMA in {one.numa_node, other.numa_node}:
        return linked
    return linked + (SAME_NUMA if one.numa_node == other.numa_node else ACROSS_NUMA)


def total_weight(of: base.NodeTopology, cards: tuple[int, ...]) -> int:
    """The sum over pairs of some cards."""
    found = pair_weights(of)
    return sum(found[i][j] for i, j in itertools.combinations(cards, 2))


@functools.lru_cache(maxsize=_MAX_CACHED)
def gpu_classes(cards: tuple[base.GpuState, ...], of: base.NodeTopology) -> tuple[int, ...]:
    """The same number for cards that can be exchanged for each other without a difference.

    They are alike, and every third card is as near to one as to the other.
    """
    found = pair_weights(of)
    out: list[int] = []
    for i, card in enumerate(cards):
        out.append(
            next(
                (
                    out[j]
                    for j in range(i)
                    if cards[j] == card and _are_interchangeable(found, i, j)
                ),
                i,
            )
        )
    return tuple(out)


def _are_interchangeable(found: Weights, i: int, j: int) -> bool:
    return all(found[i][k] == found[j][k] for k in range(len(found)) if k not in {i, j})
