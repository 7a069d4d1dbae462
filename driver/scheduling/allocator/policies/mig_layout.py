"""mig-layout: put MIG instances where the most placements stay free, large ones above all."""

import functools
import re

from driver.scheduling.allocator.policies import base

_MOST = 1 << 16
_VARIANT = re.compile(r"[+-]")
"""`1g.10gb+me`, `2g.48gb-me`: a profile with other engines."""


class MigLayout:
    """Scores what a card could still hold, and how full it then is.

    Each placement that an instance keeps others from having costs its slices and one and a half;
    each slice that it leaves free a half, so that cards that are cut are filled first. The weights
    were chosen by streams of instances (`benchmarks/placement`): where placements alone count, too
    few large ones are kept, where slices alone do, too few small ones.
    """

    name = "mig-layout"

    def score(self, candidate: base.Candidate) -> int:
        """100 for what costs nothing and for what is no MIG device; an empty card's all: 0."""
        cost = [_cost(*_change(candidate, one)) for one in _parts(candidate)]
        return max(base.MAX_SCORE - sum(cost), 0)

    def explain(self, candidate: base.Candidate) -> str:
        """How much of what the card could hold is lost."""
        lost = [_lost(*_change(candidate, one)) for one in _parts(candidate)]
        text = f"{sum(lost)} % of a GPU's MIG placements are given up, the fewest there are"
        return text if lost else ""


def _parts(candidate: base.Candidate) -> list[base.Taken]:
    return [one for one in candidate.taken if one.mode == base.PARTS]


def _change(candidate: base.Candidate, taken: base.Taken) -> tuple[base.Model, int, int]:
    """The kind of card, its free slices before and after."""
    card = candidate.before.cards[taken.card]
    return card.model, card.free, card.free & ~taken.mask


@functools.lru_cache(maxsize=_MOST)
def _cost(model: base.Model, before: int, after: int) -> int:
    whole = _worth(model, model.slices)
    cost = _worth(model, before) - _worth(model, after) + after.bit_count()
    return round(base.MAX_SCORE * cost / whole) if whole else 0


def _lost(model: base.Model, before: int, after: int) -> int:
    whole = _worth(model, model.slices)
    lost = _worth(model, before) - _worth(model, after)
    return round(base.MAX_SCORE * lost / whole) if whole else 0


def _worth(model: base.Model, free: int) -> int:
    """Twice the slices of every placement that is free, and three for each."""
    return sum(2 * mask.bit_count() + 3 for mask in _places(model) if mask & free == mask)


@functools.lru_cache(maxsize=_MOST)
def _places(model: base.Model) -> tuple[int, ...]:
    """The slices of each placement. Variants of a profile lie where it does, and count as one."""
    found = {(_VARIANT.split(part.profile)[0], part.mask) for part in model.parts}
    return tuple(mask for _, mask in sorted(found))
