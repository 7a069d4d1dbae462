"""What drivers say of the devices that a claim has: `status.devices`, both ways (KEP-4817).

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
MOST_CONDITIONS = 8
"""Of an entry, all writers' together."""


class Device(NamedTuple):
    """What an entry is of: an allocated device, or one share of it."""

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
    """What our plugin says a device does (`data` of an entry); None: not told.

    `last_busy` (RFC 3339) is when it was last seen at work, or when it was prepared. `utilization`
    is percent of its multiprocessors over the last minute. While that is not 0 the device is at
    work still, though `last_busy` is told anew only every few minutes.
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
        return next((one for one in self.conditions if one.type == kind), None)


def parse(status: fields.Raw) -> tuple[DeviceStatus, ...]:
    """Read `status.devices` of a claim's status. Raises BadInput for types that the API has not."""
    return tuple(_entry(one, at) for at, one in fields.objects(status, "devices", "status"))


def _entry(obj: fields.Raw, at: str) -> DeviceStatus:
    device = Device(*(fields.text(obj, key, at) for key in _KEYS))
    conditions = (_condition(one, path) for path, one in fields.objects(obj, "conditions", at))
    return DeviceStatus(device, tuple(conditions), _activity(obj.get("data")))


def _activity(data: object) -> Activity | None:
    """What another driver adds may be anything: what is not as ours is none."""
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


def _condition(obj: fields.Raw, at: str) -> Condition:
    return Condition(*(fields.text(obj, key, at) for key in _FIELDS))


_KEYS = ("driver", "pool", "device", "shareID")
_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")


def merge_conditions(
    before: DeviceStatus, wanted: Mapping[str, Condition | None], now: str
) -> DeviceStatus:
    """An entry after conditions are said, by type; None takes one back.

    A condition's time moves only with its status. Messages are cut to LONGEST_MESSAGE.
    """
    after = {one.type: one for one in before.conditions}
    for kind, condition in wanted.items():
        old = after.pop(kind, None)
        if condition is None:
            continue
        message = condition.message[:LONGEST_MESSAGE]
        stays = old is not None and old.status == condition.status and old.since
        since = old.since if old is not None and stays else now
        after[kind] = replace(condition, message=message, since=since)
    return replace(before, conditions=tuple(after[kind] for kind in sorted(after)))


def filter_types(entry: DeviceStatus, types: Iterable[str]) -> DeviceStatus:
    """An entry with its conditions of these types only, by type."""
    wanted = frozenset(types)
    kept = (one for one in entry.conditions if one.type in wanted)
    return replace(entry, conditions=tuple(sorted(kept, key=lambda one: one.type)))


def render(entry: DeviceStatus) -> dict[str, object]:
    """An entry as one writer applies it."""
    keys = {key: value for key, value in zip(_KEYS, entry.device, strict=True) if value}
    conditions = [_render_condition(one) for one in entry.conditions]
    data = {} if entry.activity is None else {"data": _render_activity(entry.activity)}
    return {**keys, "conditions": conditions, **data}


def _render_activity(one: Activity) -> dict[str, object]:
    told: dict[str, object] = {"lastBusy": one.last_busy}
    if one.utilization is not None:
        told["utilization"] = one.utilization
    if one.peak_bytes is not None:
        told["peakMemory"] = quantities.from_bytes(one.peak_bytes).text
    return told


def _render_condition(condition: Condition) -> dict[str, object]:
    values = (
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        condition.since,
    )
    return dict(zip(_FIELDS, values, strict=True))
