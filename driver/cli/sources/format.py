"""How documents are put on a line: amounts, ages, bars. Pure."""

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


def memory(count: int) -> str:
    """`79.6Gi`: of people's reading, a tenth exact."""
    if not count:
        return "0"
    found = count / _GIB
    return f"{found:.1f}".removesuffix(".0") + "Gi"


def elapsed_s(since: str, at: str) -> float | None:
    """Seconds from a time to another; None where it cannot be told."""
    begin, end = moment(since), moment(at)
    return max((end - begin).total_seconds(), 0.0) if begin and end else None


def age(since: str, at: str) -> str:
    """From a time to another: `3h5m`; "" where it cannot be told."""
    found = elapsed_s(since, at)
    return "" if found is None else durations.format_duration(found)


def length(seconds: float) -> str:
    """`2h30m`."""
    return durations.format_duration(seconds)


def seconds(where: str, given: str) -> float:
    """`90s`, `30m`, `2h`. Raises BadInput, naming where it was given."""
    try:
        return crd.seconds(given)
    except ValueError as error:
        raise errors.BadInput(where, str(error)) from error


def several(found: Iterable[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    names = [*found]
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def part(one: model.Part) -> str:
    """How much of the GPU a claim has: `whole`, `1g.10gb`, `20Gi 25%`."""
    if one.mode == "mig":
        return one.profile
    if one.mode in {"mps", "time-slicing"}:
        return f"{memory(one.memory)} {one.compute}%"
    return one.mode


def kept(entry: model.Kept) -> str:
    """`gang train`, `pod team/a until 2026-11-22T12:00:00Z`."""
    return f"{entry.holder} until {entry.until}" if entry.until else entry.holder


def use(one: model.Use | None, at: str) -> str:
    """`93%`, `idle 2h30m`; "" where it is not known."""
    if one is None:
        return ""
    if one.idle_since:
        return f"idle {age(one.idle_since, at)}"
    return "" if one.utilization is None else f"{one.utilization}%"


def taints(found: Sequence[model.Taint]) -> str:
    """`ration.dev/xid=79`."""
    return ", ".join(f"{one.key}={one.value}" if one.value else one.key for one in found)


def bar(gpu: model.Gpu, width: int = 16) -> str:
    """A GPU as a bar: what is given out, the idle of it lighter."""
    cells = [_EMPTY] * width
    for one in gpu.parts:
        if one.admin:
            continue
        begin = one.start * width // model.WHOLE_BAR
        end = max((one.start + one.width) * width // model.WHOLE_BAR, begin + 1)
        mark = _IDLE if one.use and one.use.idle_since else _FULL
        cells[begin:end] = mark * (min(end, width) - begin)
    return "".join(cells)


def share(of: int, whole: int) -> str:
    """`20Gi/79.6Gi`."""
    return f"{memory(of)}/{memory(whole)}"
