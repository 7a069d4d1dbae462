"""Values as text for people. Pure."""

import datetime as dt

_MODES = {
    "whole": "Whole GPU",
    "mig": "MIG",
    "mps": "MPS",
    "time-slicing": "Time slicing",
    "monitor": "Monitoring",
    "free": "Free",
    "kept": "Kept",
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024.0
_WIDE = 100
_AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def mode(name: str) -> str:
    """Return the name of a mode in text."""
    return _MODES.get(name, name)


def memory(size: int) -> str:
    """Return `79.6 GiB`, `512 MiB`; whole numbers from 100 on."""
    left, unit_index = float(size), 0
    while left >= _STEP and unit_index < len(_UNITS) - 1:
        left, unit_index = left / _STEP, unit_index + 1
    shown = f"{left:.0f}" if left >= _WIDE or left == int(left) else f"{left:.1f}"
    return f"{shown.removesuffix('.0')} {_UNITS[unit_index]}"


def percent(part: float, whole: float) -> str:
    """Return `62%`; 0% of nothing."""
    return f"{round(100 * part / whole) if whole else 0}%"


def age(stamp: str, now: dt.datetime) -> str:
    """Return the age of an RFC 3339 time: `3 h`, `12 s`; "" for none."""
    then = moment(stamp)
    if then is None:
        return ""
    seconds = max(0, int((now - then).total_seconds()))
    for size, unit in _AGES:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def moment(stamp: str) -> dt.datetime | None:
    """Parse an RFC 3339 time; None if it is invalid."""
    try:
        time = dt.datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


def at(stamp: str) -> str:
    """Return `2026-11-22 14:05:09`, in UTC; an invalid time unchanged."""
    time = moment(stamp)
    return time.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S") if time else stamp


def number(text: str) -> float | None:
    """`12.5`; None for none."""
    try:
        return float(text)
    except ValueError:
        return None


def many(count: int, singular: str, plural: str = "") -> str:
    """`1 node`, `3 nodes`."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"
