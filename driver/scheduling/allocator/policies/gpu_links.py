"""Connection weights of a node's GPUs, pair by pair, and interchangeable GPUs. Pure.

Weights follow published ratios of bandwidth (NV-14): under one PCIe root 1, across roots 0.53,
across NUMA nodes about half of that again; NVLink is several times PCIe.
"""

import functools
import itertools

from driver.scheduling.allocator.policies import base

NVLINK = 100
SAME_ROOT, SAME_NUMA, ACROSS_NUMA = 30, 16, 8
BEST_PAIR = NVLINK + SAME_ROOT
"""Maximum weight of a pair."""
_MAX_CACHED = 1024
Weights = tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=_MAX_CACHED)
def pair_weights(topology: base.NodeTopology) -> Weights:
    """Return the weight of each pair: NVLink, plus the PCIe and NUMA distance."""
    order = range(len(topology.locations))
    return tuple(tuple(_pair_weight(topology, i, j) for j in order) for i in order)


def _pair_weight(topology: base.NodeTopology, i: int, j: int) -> int:
    if i == j:
        return 0
    location, other = topology.locations[i], topology.locations[j]
    linked = NVLINK if location.peers >> j & 1 or other.peers >> i & 1 else 0
    if location.pcie_root and location.pcie_root == other.pcie_root:
        return linked + SAME_ROOT
    if base.UNKNOWN_NUMA in {location.numa_node, other.numa_node}:
        return linked
    return linked + (SAME_NUMA if location.numa_node == other.numa_node else ACROSS_NUMA)


def total_weight(topology: base.NodeTopology, gpus: tuple[int, ...]) -> int:
    """Return the sum over the pairs of some GPUs."""
    weights = pair_weights(topology)
    return sum(weights[i][j] for i, j in itertools.combinations(gpus, 2))


@functools.lru_cache(maxsize=_MAX_CACHED)
def gpu_classes(gpus: tuple[base.GpuState, ...], topology: base.NodeTopology) -> tuple[int, ...]:
    """Return a number per GPU, the same for GPUs that are interchangeable.

    They are equal, and every third GPU is as near to one as to the other.
    """
    interchangeable = _interchangeable(topology)
    classes: list[int] = []
    for i, gpu in enumerate(gpus):
        number = i
        for j in interchangeable[i]:
            if gpus[j] == gpu:
                number = classes[j]
                break
        classes.append(number)
    return tuple(classes)


@functools.lru_cache(maxsize=_MAX_CACHED)
def _interchangeable(topology: base.NodeTopology) -> tuple[tuple[int, ...], ...]:
    """Return for each GPU those before it whose place it could take."""
    weights = pair_weights(topology)
    return tuple(
        tuple(j for j in range(i) if _are_interchangeable(weights, i, j))
        for i in range(len(weights))
    )


def _are_interchangeable(weights: Weights, i: int, j: int) -> bool:
    return all(weights[i][k] == weights[j][k] for k in range(len(weights)) if k not in {i, j})
