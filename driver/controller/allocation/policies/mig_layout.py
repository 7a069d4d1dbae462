"""mig-layout: put MIG instances where the most placements stay free, large ones above all."""

import functools

from driver.controller.allocation.policies import base

_MOST = 1 << 16


class MigLayout:
    """Scores what a card could still hold: each free placement counts its slices, and one more.

    The weights were chosen by streams of instances (`benchmarks/placement`): counting placements
    alone keeps too few large ones, counting slices alone too few small ones.
    """

    name = "mig-layout"

    def score(self, candidate: base.Candidate) -> int:
        """What placements stay, in percent of an empty card's; 100 for what is no MIG device."""
        lost = [_lost(candidate, one) for one in candidate.taken if one.mode == base.PARTS]
        return max(base.MAX_SCORE - sum(lost), 0)

    def explain(self, candidate: base.Candidate) -> str:
        """How much of what the card could hold is lost beyond the instance itself."""
        lost = [_lost(candidate, one) for one in candidate.taken if one.mode == base.PARTS]
        return f"{sum(lost)} % of a GPU's MIG placements are given up" if lost else ""


def _lost(candidate: base.Candidate, taken: base.Taken) -> int:
    card = candidate.before.cards[taken.card]
    return _cost(card.model, card.free, taken.mask)


@functools.lru_cache(maxsize=_MOST)
def _cost(model: base.Model, free: int, mask: int) -> int:
    whole = _worth(model, model.slices)
    lost = _worth(model, free) - _worth(model, free & ~mask)
    return round(base.MAX_SCORE * lost / whole) if whole else 0


def _worth(model: base.Model, free: int) -> int:
    fitting = (part.mask for part in model.parts if part.mask & free == part.mask)
    return sum(mask.bit_count() + 1 for mask in fitting)
