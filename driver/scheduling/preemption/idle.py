"""Since when a workload's GPUs do nothing, by what the plugins say of its claims. Pure."""

import datetime as dt
from collections.abc import Callable, Iterable

from driver import ids
from driver.resources.dra import claims, device_status
from driver.scheduling.preemption import victims

FindClaim = Callable[[ids.Key], claims.Claim | None]


def idle_since(unit: victims.Victim, find: FindClaim) -> dt.datetime | None:
    """When the last of its devices was at work; None where one is, or nothing is told of one."""
    found = [_device_idle_since(entry) for entry in _device_statuses(unit, find)]
    known = [one for one in found if one is not None]
    return max(known, default=None) if len(known) == len(found) else None


def _device_statuses(
    unit: victims.Victim, find: FindClaim
) -> Iterable[device_status.DeviceStatus | None]:
    """What is said of each device that it has; None where nothing is."""
    for key in {key for one in unit.pods for key in one.pod.claim_keys}:
        claim = find(key)
        if claim is None or claim.allocation is None:
            continue
        said = {one.device: one for one in claim.said}
        for result in claim.allocation.results:
            if not result.admin_access:
                yield said.get(device_status.Device(*result.device, result.share_id))


def _device_idle_since(entry: device_status.DeviceStatus | None) -> dt.datetime | None:
    activity = entry.activity if entry is not None else None
    if activity is None or not activity.idle_since:
        return None
    try:
        found = dt.datetime.fromisoformat(activity.idle_since)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
