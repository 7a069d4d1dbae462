"""Idle time of a workload's GPUs, by what the plugins report on its claims. Pure."""

import datetime as dt
from collections.abc import Callable, Iterable

from driver import ids
from driver.resources.dra import claims, device_status
from driver.scheduling.preemption import victims

FindClaim = Callable[[ids.Key], claims.Claim | None]


def idle_since(victim: victims.Victim, find: FindClaim) -> dt.datetime | None:
    """Return when the last of its devices became idle; None if one is busy or not reported."""
    times = [_device_idle_since(entry) for entry in _device_statuses(victim, find)]
    known_times = [time for time in times if time is not None]
    return max(known_times, default=None) if len(known_times) == len(times) else None


def _device_statuses(
    victim: victims.Victim, find: FindClaim
) -> Iterable[device_status.DeviceStatus | None]:
    """Yield the status of each of its devices; None for a device without one."""
    for key in {key for holder in victim.pods for key in holder.pod.claim_keys}:
        claim = find(key)
        if claim is None or claim.allocation is None:
            continue
        by_device = {holder.device: holder for holder in claim.device_statuses}
        for result in claim.allocation.results:
            if not result.admin_access:
                yield by_device.get(device_status.Device(*result.device, result.share_id))


def _device_idle_since(entry: device_status.DeviceStatus | None) -> dt.datetime | None:
    activity = entry.activity if entry is not None else None
    if activity is None or not activity.idle_since:
        return None
    try:
        time = dt.datetime.fromisoformat(activity.idle_since)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None
