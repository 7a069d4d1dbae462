"""How much of the GPUs is given out, in thousandths of one. Pure."""

from collections.abc import Iterable

from driver.controller import view as cluster
from driver.controller.allocation import anatomy
from driver.controller.allocation.policies import base
from driver.controller.queueing import amounts
from driver.resources import claims

FULL = base.FULL
"""A whole GPU."""


def capacity(view: cluster.ClusterView) -> int:
    """Of all GPUs that our driver publishes."""
    return sum(
        len(anatomy.of(pool).idle) * FULL
        for pool in view.pools.values()
        if pool.driver == view.driver
    )


def given(view: cluster.ClusterView) -> int:
    """What is given out now. Administrators' access takes nothing."""
    return sum(
        _of_result(view, holder.result)
        for pool in view.pools.values()
        if pool.driver == view.driver
        for name in view.used(pool)
        for holder in view.holders(claims.DeviceId(pool.driver, pool.name, name))
    )


def of(view: cluster.ClusterView, found: Iterable[claims.Claim]) -> int:
    """What claims have."""
    return sum(
        _of_result(view, result)
        for claim in found
        for result in (claim.allocation.results if claim.allocation else ())
        if not result.admin_access
    )


def _of_result(view: cluster.ClusterView, result: claims.Result) -> int:
    """Of a share the part of what is scarcest; of MIG its memory slices, or its memory."""
    return amounts.of_result(view, result).gpus
