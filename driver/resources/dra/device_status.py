"""Device status of claims: `status.devices`, parsed and rendered (KEP-4817).

An entry belongs to all who write it, a condition of it to one, its `data` to the driver. Read are
all entries and their conditions; rendered are the entries and conditions of one writer, for a
server-side apply, which leaves everything else on the claim alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from driver import errors
from driver.resources import fields, quantities

LONGEST_MESSAGE = 1024
"""Characters of ours; the API takes 32768."""


class Device(NamedTuple):
    """Device of an entry: an allocated device, or one share of it."""

    driver: str
    pool: str
    device: str
    share_id: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: `status` is True, False or Unknown; `since` (RFC 3339) when it became so."""

    type: str
    status: str
    reason: str
    message: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Activity:
    """Activity of a device as the plugin reports it (`data` of an entry); None: not reported.

    `last_busy` (RFC 3339) is when it was last seen busy, or when it was prepared. `utilization` is
    percent of its multiprocessors over the last minute. While that is not 0 the device is busy,
    although `last_busy` is reported only every few minutes.
    """

    last_busy: str
    utilization: int | None = None
    peak_bytes: int | None = None

    @property
    def idle_since(self) -> str:
        """Since when nothing ran on it; "" while something does, or may."""
        return self.last_busy if self.utilization == 0 else ""


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """An entry of `status.devices`, as far as its conditions and what our plugin adds."""

    device: Device
    conditions: tuple[Condition, ...] = ()
    activity: Activity | None = None

    def condition(self, kind: str) -> Condition | None:
        """The condition of a type, where there is one."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


def parse(status: fields.Raw) -> tuple[DeviceStatus, ...]:
    """Read `status.devices` of a claim's status. Raises BadInput for types that the API has not."""
    return tuple(_entry(item, path) for path, item in fields.objects(status, "devices", "status"))


def _entry(obj: fields.Raw, field_path: str) -> DeviceStatus:
    device = Device(*(fields.text(obj, key, field_path) for key in _KEYS))
    conditions = (
        _condition(item, path) for path, item in fields.objects(obj, "conditions", field_path)
    )
    return DeviceStatus(device, tuple(conditions), _activity(obj.get("data")))


def _activity(data: object) -> Activity | None:
    """Return the activity; None for another driver's data."""
    if not isinstance(data, Mapping) or not isinstance(data.get("lastBusy"), str):
        return None
    percent, peak = data.get("utilization"), data.get("peakMemory")
    counts = isinstance(percent, int) and not isinstance(percent, bool)
    return Activity(data["lastBusy"], percent if counts else None, _bytes(peak))


def _bytes(text: object) -> int | None:
    try:
        return quantities.parse(text).units if isinstance(text, str) else None
    except errors.BadInput:
        return None


def _condition(obj: fields.Raw, path: str) -> Condition:
    return Condition(*(fields.text(obj, key, path) for key in _FIELDS))


_KEYS = ("driver", "pool", "device", "shareID")
_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")


def merge_conditions(
    device_status: DeviceStatus, conditions: Mapping[str, Condition | None], now: str
) -> DeviceStatus:
    """An entry after conditions are said, by type; None takes one back.

    A condition's time moves only with its status. Messages are cut to LONGEST_MESSAGE.
    """
    after = {item.type: item for item in device_status.conditions}
    for kind, condition in conditions.items():
        old = after.pop(kind, None)
        if condition is None:
            continue
        message = condition.message[:LONGEST_MESSAGE]
        stays = old is not None and old.status == condition.status and old.since
        since = old.since if old is not None and stays else now
        after[kind] = replace(condition, message=message, since=since)
    return replace(device_status, conditions=tuple(after[kind] for kind in sorted(after)))


def filter_types(entry: DeviceStatus, types: Iterable[str]) -> DeviceStatus:
    """An entry with its conditions of these types only, by type."""
    desired = frozenset(types)
    conditions = (condition for condition in entry.conditions if condition.type in desired)
    return replace(
        entry, conditions=tuple(sorted(conditions, key=lambda condition: condition.type))
    )


def render(entry: DeviceStatus) -> dict[str, object]:
    """An entry as one writer applies it."""
    keys = {key: value for key, value in zip(_KEYS, entry.device, strict=True) if value}
    conditions = [_render_condition(condition) for condition in entry.conditions]
    data = {} if entry.activity is None else {"data": _render_activity(entry.activity)}
    return {**keys, "conditions": conditions, **data}


def _render_activity(activity: Activity) -> dict[str, object]:
    message: dict[str, object] = {"lastBusy": activity.last_busy}
    if activity.utilization is not None:
        message["utilization"] = activity.utilization
    if activity.peak_bytes is not None:
        message["peakMemory"] = quantities.from_bytes(activity.peak_bytes).text
    return message


def _render_condition(condition: Condition) -> dict[str, object]:
    values = (
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        condition.since,
    )
    return dict(zip(_FIELDS, values, strict=True))
