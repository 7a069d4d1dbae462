"""mig-layout: place MIG instances where the most placements stay free, large ones above all."""

import functools
import re

from driver.scheduling.allocator.policies import base

_MAX_CACHED = 1 << 16
_VARIANT = re.compile(r"[+-]")
"""`1g.10gb+me`, `2g.48gb-me`: a profile with other engines."""


class MigLayout:
    """Scores the placements that a GPU could still hold, and how full it then is.

    Each placement that an instance blocks costs its slices and one and a half; each slice that it
    leaves free a half, so that partitioned GPUs are filled first. The weights were chosen by
    streams of instances (`benchmarks/placement`): with placements alone too few large ones remain,
    with slices alone too few small ones.
    """

    name = "mig-layout"

    def score(self, candidate: base.Candidate) -> int:
        """Return 100 for no cost and for no MIG device; an empty GPU's all: 0."""
        cost = [_cost(*_slice_change(candidate, usage)) for usage in _mig_usages(candidate)]
        return max(base.MAX_SCORE - sum(cost), 0)

    def explain(self, candidate: base.Candidate) -> str:
        """Return the fraction of the GPU's placements that is lost."""
        lost = [
            _lost_placements(*_slice_change(candidate, usage)) for usage in _mig_usages(candidate)
        ]
        text = f"{sum(lost)} % of a GPU's MIG placements are given up, the fewest there are"
        return text if lost else ""


def _mig_usages(candidate: base.Candidate) -> list[base.Usage]:
    return [usage for usage in candidate.usages if usage.mode == base.MIG]


def _slice_change(candidate: base.Candidate, usage: base.Usage) -> tuple[base.GpuModel, int, int]:
    """Return the GPU model, and its free slices before and after."""
    gpu = candidate.before.gpus[usage.gpu]
    return gpu.model, gpu.free_slices, gpu.free_slices & ~usage.mask


@functools.lru_cache(maxsize=_MAX_CACHED)
def _cost(model: base.GpuModel, free_before: int, free_after: int) -> int:
    whole = _layout_value(model, model.all_slices)
    cost = (
        _layout_value(model, free_before)
        - _layout_value(model, free_after)
        + free_after.bit_count()
    )
    return round(base.MAX_SCORE * cost / whole) if whole else 0


def _lost_placements(model: base.GpuModel, free_before: int, free_after: int) -> int:
    whole = _layout_value(model, model.all_slices)
    lost = _layout_value(model, free_before) - _layout_value(model, free_after)
    return round(base.MAX_SCORE * lost / whole) if whole else 0


def _layout_value(model: base.GpuModel, free: int) -> int:
    """Return twice the slices of every free placement, plus three for each."""
    return sum(2 * mask.bit_count() + 3 for mask in _placement_masks(model) if mask & free == mask)


@functools.lru_cache(maxsize=_MAX_CACHED)
def _placement_masks(model: base.GpuModel) -> tuple[int, ...]:
    """Return the slices of each placement. Variants of a profile share them and count once."""
    placements = {
        (_VARIANT.split(placement.profile)[0], placement.mask) for placement in model.placements
    }
    return tuple(mask for _, mask in sorted(placements))
