"""mig-layout: put MIG instances where the most placements stay free, large ones above all."""

import functools
import re

from driver.scheduling.allocator.policies import base

_MAX_CACHED = 1 << 16
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
        cost = [_cost(*_slice_change(candidate, one)) for one in _mig_usages(candidate)]
        return max(base.MAX_SCORE - sum(cost), 0)

    def explain(self, candidate: base.Candidate) -> str:
        """How much of what the card could hold is lost."""
        lost = [_lost_placements(*_slice_change(candidate, one)) for one in _mig_usages(candidate)]
        text = f"{sum(lost)} % of a GPU's MIG placements are given up, the fewest there are"
        return text if lost else ""


def _mig_usages(candidate: base.Candidate) -> list[base.Usage]:
    return [one for one in candidate.usages if one.mode == base.MIG]


def _slice_change(candidate: base.Candidate, taken: base.Usage) -> tuple[base.GpuModel, int, int]:
    """The kind of card, its free slices before and after."""
    card = candidate.before.gpus[taken.gpu]
    return card.model, card.free_slices, card.free_slices & ~taken.mask


@functools.lru_cache(maxsize=_MAX_CACHED)
def _cost(model: base.GpuModel, before: int, after: int) -> int:
    whole = _layout_value(model, model.all_slices)
    cost = _layout_value(model, before) - _layout_value(model, after) + after.bit_count()
    return round(base.MAX_SCORE * cost / whole) if whole else 0


def _lost_placements(model: base.GpuModel, before: int, after: int) -> int:
    whole = _layout_value(model, model.all_slices)
    lost = _layout_value(model, before) - _layout_value(model, after)
    return round(base.MAX_SCORE * lost / whole) if whole else 0


def _layout_value(model: base.GpuModel, free: int) -> int:
    """Twice the slices of every placement that is free, and three for each."""
    return sum(2 * mask.bit_count() + 3 for mask in _placement_masks(model) if mask & free == mask)


@functools.lru_cache(maxsize=_MAX_CACHED)
def _placement_masks(model: base.GpuModel) -> tuple[int, ...]:
    """The slices of each placement. Variants of a profile lie where it does, and count as one."""
    found = {(_VARIANT.split(part.profile)[0], part.mask) for part in model.placements}
    return tuple(mask for _, mask in sorted(found))
