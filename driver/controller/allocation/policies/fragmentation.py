"""fragmentation: leave as little idle GPU as possible that what is usually asked cannot use.

The gradient of Weng and others, "Beware of Fragmentation" (USENIX ATC 2023), over GPUs that are
shared, cut by MIG or whole.
"""

import math
from collections import Counter

from driver.controller.allocation.policies import base, mix

_MOST = 1 << 16
_LEVELS = 40
"""Finer levels pack worse, coarser ones too (`benchmarks/placement`)."""


class Fragmentation:
    """Scores how much the fragmentation of a node falls, quantised (D6)."""

    name = "fragmentation"

    def __init__(self, usual: mix.Mix) -> None:
        self._usual = usual
        self._known: dict[tuple[int, tuple[base.Card, ...]], float] = {}

    def score(self, candidate: base.Candidate) -> int:
        """50 where it stays, more where it falls."""
        fallen = self._of(candidate.before) - self._of(candidate.after)
        level = math.floor(_LEVELS / (1 + math.exp(-fallen / base.FULL)))
        return base.MAX_SCORE * level // _LEVELS

    def explain(self, candidate: base.Candidate) -> str:
        """How much idle GPU becomes of no use, or of use."""
        grown = round(self._of(candidate.after) - self._of(candidate.before))
        if grown <= 0:
            return "no idle GPU becomes useless to what is usually asked"
        return f"{grown / base.FULL:.2f} of an idle GPU become useless to what is usually asked"

    def _of(self, room: base.Room) -> float:
        """Idle thousandths that the usual shapes cannot use, in the mean."""
        key = self._usual.step(room.cpu), room.cards
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = _fragmented(self._usual, room)
        return known


def _fragmented(usual: mix.Mix, room: base.Room) -> float:
    cards = [(card, number) for card, number in Counter(room.cards).items() if card.left]
    idle = sum(card.left * number for card, number in cards)
    return sum(
        weight * (_unused(demand, cards) if demand.cpu <= room.cpu else idle)
        for demand, weight in usual.shapes
    )


def _unused(demand: mix.Demand, cards: list[tuple[base.Card, int]]) -> int:
    """Idle thousandths that a shape cannot use: all of them, where it does not fit at all."""
    served = unused = 0
    for card, number in cards:
        if demand.number and demand.fits(card):
            served += number
        else:
            unused += card.left * number
    enough = demand.number and served >= demand.number
    return unused if enough else sum(card.left * number for card, number in cards)
