"""How much of the GPUs is given out, in thousandths of one. Pure."""

from collections.abc import Iterable

from driver.resources.dra import claims
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.allocator.policies import base
from driver.scheduling.queues import resources
from driver.scheduling.snapshot import snapshot

FULL = base.FULL
"""A whole GPU."""


def capacity(view: snapshot.Snapshot) -> int:
    """Of all GPUs that our driver publishes."""
    return sum(
        len(pool_layout.get_layout(pool).idle_gpus) * FULL
        for pool in view.pools.values()
        if pool.driver == view.driver
    )


def allocated(view: snapshot.Snapshot) -> int:
    """What is given out now. Administrators' access takes nothing."""
    return sum(
        _result_usage(view, holder.result)
        for pool in view.pools.values()
        if pool.driver == view.driver
        for name in view.used_devices(pool)
        for holder in view.holders(claims.DeviceId(pool.driver, pool.name, name))
    )


def claims_usage(view: snapshot.Snapshot, found: Iterable[claims.Claim]) -> int:
    """What claims have."""
    return sum(
        _result_usage(view, result)
        for claim in found
        for result in (claim.allocation.results if claim.allocation else ())
        if not result.admin_access
    )


def _result_usage(view: snapshot.Snapshot, result: claims.Result) -> int:
    """Of a share the part of what is scarcest; of MIG its memory slices, or its memory."""
    return resources.result_amounts(view, result).gpus
