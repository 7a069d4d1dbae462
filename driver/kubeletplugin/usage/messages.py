"""What people are told of a claim's use of a GPU. Pure."""

from collections.abc import Mapping

from driver import ids
from driver.kubeletplugin.usage import usage

_MIB, _GIB = 1 << 20, 1 << 30
_MOST = 10
"""Processes in a text: an event's note has 1024 bytes."""

Names = Mapping[ids.PodUid, str]
"""`namespace/name` of pods, as far as it is known."""


def overuse_message(use: usage.ClaimUse, names: Names) -> str:
    """That it uses more than its share, and with which processes."""
    shown = [one for one in use.processes if one.used_bytes]
    by_pod: dict[ids.PodUid, list[str]] = {}
    for one in shown[:_MOST]:
        text = f"{one.process.pid} ({_format_bytes(use, one.used_bytes)})"
        by_pod.setdefault(one.pod, []).append(text)
    parts = [
        f"{'pids' if len(pids) > 1 else 'pid'} {', '.join(pids)} of pod {names.get(pod, pod)}"
        for pod, pids in by_pod.items()
    ]
    more = f" and {len(shown) - _MOST} more processes" if len(shown) > _MOST else ""
    return f"{usage_message(use)}: {'; '.join(parts)}{more}"


def usage_message(use: usage.ClaimUse) -> str:
    """What it uses, and what it was given."""
    others = ", ".join(f"{one.namespace}/{one.name}" for one in use.others)
    together = f" together with {others}" if others else ""
    used, given = (_format_bytes(use, size) for size in (use.used_bytes, use.allocated_bytes))
    return f"uses {used} of {use.gpu}, was given {given}{together}"


def _format_bytes(use: usage.ClaimUse, size: int) -> str:
    """In GiB; where that would not tell use and share apart, in MiB or bytes."""
    for unit, name, digits in ((_GIB, "GiB", 1), (_MIB, "MiB", 0)):
        used, given = (f"{one / unit:.{digits}f}" for one in (use.used_bytes, use.allocated_bytes))
        if used != given or use.used_bytes == use.allocated_bytes:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size} bytes"
