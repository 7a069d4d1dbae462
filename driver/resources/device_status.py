"""What drivers say of the devices that a claim has: `status.devices`, both ways (KEP-4817).

An entry belongs to all who write it, a condition of it to one. Read are all entries and their
conditions; rendered are the entries and conditions of one writer, for a server-side apply, which
leaves everything else on the claim alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from driver.resources import fields

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
class DeviceStatus:
    """An entry of `status.devices`, as far as its conditions."""

    device: Device
    conditions: tuple[Condition, ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """The condition of a type, where there is one."""
        return next((one for one in self.conditions if one.type == kind), None)


def parse(status: fields.Raw) -> tuple[DeviceStatus, ...]:
    """Read `status.devices` of a claim's status. Raises BadInput for types that the API has not."""
    return tuple(_entry(one, at) for at, one in fields.objects(status, "devices", "status"))


def _entry(obj: fields.Raw, at: str) -> DeviceStatus:
    device = Device(*(fields.text(obj, key, at) for key in _KEYS))
    conditions = (_condition(one, path) for path, one in fields.objects(obj, "conditions", at))
    return DeviceStatus(device, tuple(conditions))


def _condition(obj: fields.Raw, at: str) -> Condition:
    return Condition(*(fields.text(obj, key, at) for key in _FIELDS))


_KEYS = ("driver", "pool", "device", "shareID")
_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")


def changed(before: DeviceStatus, wanted: Mapping[str, Condition | None], now: str) -> DeviceStatus:
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


def of_types(entry: DeviceStatus, types: Iterable[str]) -> DeviceStatus:
    """An entry with its conditions of these types only, by type."""
    wanted = frozenset(types)
    kept = (one for one in entry.conditions if one.type in wanted)
    return replace(entry, conditions=tuple(sorted(kept, key=lambda one: one.type)))


def render(entry: DeviceStatus) -> dict[str, object]:
    """An entry as one writer applies it."""
    keys = {key: value for key, value in zip(_KEYS, entry.device, strict=True) if value}
    return {**keys, "conditions": [_render_condition(one) for one in entry.conditions]}


def _render_condition(condition: Condition) -> dict[str, object]:
    values = (
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        condition.since,
    )
    return dict(zip(_FIELDS, values, strict=True))
