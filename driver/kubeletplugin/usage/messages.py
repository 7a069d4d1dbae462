"""Messages about a claim's use of a GPU. Pure."""

from collections.abc import Mapping

from driver import ids
from driver.kubeletplugin.usage import usage

_MIB, _GIB = 1 << 20, 1 << 30
_MOST = 10
"""Processes in a text: an event's note has 1024 bytes."""

Names = Mapping[ids.PodUid, str]
"""`namespace/name` of pods, as far as it is known."""


def overuse_message(use: usage.ClaimUse, names: Names) -> str:
    """Return the message of a claim above its share, with its processes."""
    listed = [process for process in use.processes if process.used_bytes]
    by_pod: dict[ids.PodUid, list[str]] = {}
    for process in listed[:_MOST]:
        text = f"{process.process.pid} ({_format_bytes(use, process.used_bytes)})"
        by_pod.setdefault(process.pod, []).append(text)
    parts = [
        f"{'pids' if len(pids) > 1 else 'pid'} {', '.join(pids)} of pod {names.get(pod, pod)}"
        for pod, pids in by_pod.items()
    ]
    more = f" and {len(listed) - _MOST} more processes" if len(listed) > _MOST else ""
    return f"{usage_message(use)}: {'; '.join(parts)}{more}"


def usage_message(use: usage.ClaimUse) -> str:
    """Return a claim's use and its allocated amount."""
    names = ", ".join(f"{ref.namespace}/{ref.name}" for ref in use.others)
    together = f" together with {names}" if names else ""
    used, allocated = (_format_bytes(use, size) for size in (use.used_bytes, use.allocated_bytes))
    return f"uses {used} of {use.gpu}, allocated {allocated}{together}"


def _format_bytes(use: usage.ClaimUse, size: int) -> str:
    """Format in GiB; if use and share would look equal, in MiB or bytes."""
    for unit, name, digits in ((_GIB, "GiB", 1), (_MIB, "MiB", 0)):
        used, allocated = (
            f"{amount / unit:.{digits}f}" for amount in (use.used_bytes, use.allocated_bytes)
        )
        if used != allocated or use.used_bytes == use.allocated_bytes:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size} bytes"
