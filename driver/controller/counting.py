"""Shared counters of a pool (KEP-4815): what devices in use leave for the others. Pure.

A device in use is charged once, by the slices of now; one that no slice shows charges nothing, as
with kube-scheduler.
"""

from collections.abc import Container, Iterator, Sequence

from driver.resources import claims, slices

_Left = dict[tuple[str, str], int]
"""Nano-units by counter set and counter."""


def drained(
    pool: Sequence[slices.Slice], taken: Container[claims.DeviceId]
) -> Iterator[claims.DeviceId]:
    """The free devices of a pool, given as its slices, that lack a counter."""
    left: _Left = {
        (shared.name, name): amount.nanos
        for one in pool
        for shared in one.counter_sets
        for name, amount in shared.counters.items()
    }
    free: list[tuple[claims.DeviceId, slices.Device]] = []
    for one in pool:
        for device in one.devices:
            identity = claims.DeviceId(one.driver, one.pool, device.name)
            if identity not in taken:
                free.append((identity, device))
                continue
            for key, amount in _uses(device):
                left[key] = left.get(key, 0) - amount
    yield from (
        identity
        for identity, device in free
        if any(left.get(key, 0) < amount for key, amount in _uses(device))
    )


def _uses(device: slices.Device) -> Iterator[tuple[tuple[str, str], int]]:
    for use in device.consumes:
        for name, amount in use.counters.items():
            yield (use.set, name), amount.nanos
