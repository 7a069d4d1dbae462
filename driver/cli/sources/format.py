"""Formats values on a line: amounts, ages, bars. Pure."""

from collections.abc import Iterable, Sequence

from driver import errors
from driver.api import crd
from driver.resources import durations
from driver.scheduling.reports import model
from driver.scheduling.reports.format import moment

_GIB = 1 << 30
_FULL, _EMPTY, _IDLE = "█", "·", "░"
MODES = {
    "whole": "green",
    "mig": "magenta",
    "mps": "cyan",
    "time-slicing": "yellow",
    "free": "",
    "kept": "blue",
    "monitor": "",
}
HEALTH = {"unhealthy": "red", "cordoned": "yellow"}


def format_memory(count: int) -> str:
    """`79.6Gi`: of people's reading, a tenth exact."""
    if not count:
        return "0"
    result = count / _GIB
    return f"{result:.1f}".removesuffix(".0") + "Gi"


def elapsed_s(since: str, now: str) -> float | None:
    """Seconds from a time to another; None where it cannot be told."""
    begin, end = moment(since), moment(now)
    return max((end - begin).total_seconds(), 0.0) if begin and end else None


def format_age(since: str, now: str) -> str:
    """Return the time between two times: `3h5m`; "" if unknown."""
    result = elapsed_s(since, now)
    return "" if result is None else durations.format_duration(result)


def format_duration(seconds: float) -> str:
    """`2h30m`."""
    return durations.format_duration(seconds)


def parse_seconds(path: str, granted: str) -> float:
    """`90s`, `30m`, `2h`. Raises BadInput, naming where it was given."""
    try:
        return crd.seconds(granted)
    except ValueError as error:
        raise errors.BadInput(path, str(error)) from error


def format_names(result: Iterable[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    names = [*result]
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def format_part(part: model.Part) -> str:
    """Return the GPU part of a claim: `whole`, `1g.10gb`, `20Gi 25%`."""
    if part.mode == "mig":
        return part.profile
    if part.mode in {"mps", "time-slicing"}:
        return f"{format_memory(part.memory)} {part.compute}%"
    return part.mode


def format_kept(entry: model.Kept) -> str:
    """Return the holder and end: `gang train`, `pod team/a until 2026-11-22T12:00:00Z`."""
    return f"{entry.holder} until {entry.until}" if entry.until else entry.holder


def format_use(use: model.Use | None, now: str) -> str:
    """`93%`, `idle 2h30m`; "" where it is not known."""
    if use is None:
        return ""
    if use.idle_since:
        return f"idle {format_age(use.idle_since, now)}"
    return "" if use.utilization is None else f"{use.utilization}%"


def format_taints(taints: Sequence[model.Taint]) -> str:
    """`ration.dev/xid=79`."""
    return ", ".join(f"{taint.key}={taint.value}" if taint.value else taint.key for taint in taints)


def format_bar(gpu: model.Gpu, width: int = 16) -> str:
    """A GPU as a bar: what is given out, the idle of it lighter."""
    cells = [_EMPTY] * width
    for part in gpu.parts:
        if part.admin:
            continue
        begin = part.start * width // model.WHOLE_BAR
        end = max((part.start + part.width) * width // model.WHOLE_BAR, begin + 1)
        mark = _IDLE if part.use and part.use.idle_since else _FULL
        cells[begin:end] = mark * (min(end, width) - begin)
    return "".join(cells)


def format_share(amount: int, whole: int) -> str:
    """`20Gi/79.6Gi`."""
    return f"{format_memory(amount)}/{format_memory(whole)}"
