"""How well the GPUs of a node are connected, pair by pair, and which are interchangeable. Pure.

Weights follow published ratios of bandwidth (NV-14): under one PCIe root 1, across roots 0.53,
across NUMA nodes about half of that again; NVLink is several times PCIe.
"""

import functools
import itertools

from driver.controller.allocation.policies import base

NVLINK = 100
SAME_ROOT, SAME_NUMA, ACROSS = 30, 16, 8
BEST = NVLINK + SAME_ROOT
"""The most that a pair can weigh."""
_MOST = 1024
Weights = tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=_MOST)
def weights(of: base.Wiring) -> Weights:
    """By pair: NVLink, and beside it how near the two are for the host."""
    order = range(len(of.positions))
    return tuple(tuple(_weight(of, i, j) for j in order) for i in order)


def _weight(of: base.Wiring, i: int, j: int) -> int:
    if i == j:
        return 0
    one, other = of.positions[i], of.positions[j]
    linked = NVLINK if one.peers >> j & 1 or other.peers >> i & 1 else 0
    if one.root and one.root == other.root:
        return linked + SAME_ROOT
    if base.UNKNOWN in {one.numa, other.numa}:
        return linked
    return linked + (SAME_NUMA if one.numa == other.numa else ACROSS)


def together(of: base.Wiring, cards: tuple[int, ...]) -> int:
    """The sum over pairs of some cards."""
    found = weights(of)
    return sum(found[i][j] for i, j in itertools.combinations(cards, 2))


@functools.lru_cache(maxsize=_MOST)
def kinds(cards: tuple[base.Card, ...], of: base.Wiring) -> tuple[int, ...]:
    """The same number for cards that can be exchanged for each other without a difference.

    They are alike, and every third card is as near to one as to the other.
    """
    found = weights(of)
    out: list[int] = []
    for i, card in enumerate(cards):
        out.append(next((out[j] for j in range(i) if cards[j] == card and _alike(found, i, j)), i))
    return tuple(out)


def _alike(found: Weights, i: int, j: int) -> bool:
    return all(found[i][k] == found[j][k] for k in range(len(found)) if k not in {i, j})
