"""Allocated GPUs, in thousandths of one. Pure."""

from collections.abc import Iterable

from driver.resources.dra import claims
from driver.scheduling.allocator.capacity import pool_layout, vocabulary
from driver.scheduling.allocator.policies import base
from driver.scheduling.queues import resources
from driver.scheduling.snapshot import snapshot

FULL = base.FULL
"""A whole GPU."""


def capacity(view: snapshot.Snapshot) -> int:
    """Return all GPUs that our driver publishes."""
    return sum(
        len(pool_layout.get_layout(pool).idle_gpus) * FULL
        for pool in view.pools.values()
        if vocabulary.is_gpu_pool(view, pool)
    )


def allocated(view: snapshot.Snapshot) -> int:
    """Return what is allocated now. Administrative access counts nothing."""
    return sum(
        _result_usage(view, holder.result)
        for pool in view.pools.values()
        if vocabulary.is_gpu_pool(view, pool)
        for name in view.used_devices(pool)
        for holder in view.holders(claims.DeviceId(pool.driver, pool.name, name))
    )


def claims_usage(view: snapshot.Snapshot, all_claims: Iterable[claims.Claim]) -> int:
    """Return the usage of claims."""
    return sum(
        _result_usage(view, result)
        for claim in all_claims
        for result in (claim.allocation.results if claim.allocation else ())
        if not result.admin_access
    )


def _result_usage(view: snapshot.Snapshot, result: claims.Result) -> int:
    """Return a share's fraction of the scarcest capacity; with MIG its memory slices, or memory."""
    return resources.result_amounts(view, result).gpus
