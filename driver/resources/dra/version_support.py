"""Cluster version checks for shared and partitioned GPUs (D17). Pure."""

import re
from collections.abc import Iterable

FLOOR = (1, 36, 4)
"""1.36.0 and .1 do not charge the counters of a shared device in use, so they give the same GPU
twice, and panic on `All` over counter devices; before 1.36.4 counter caches mix the pools of two
drivers (D17)."""
_NEEDED = ("sharedCounters", "consumesCounters", "allowMultipleAllocations", "requestPolicy")


def check_version(git_version: str) -> str | None:
    """Return why a server version (`v1.36.5`, `v1.36.4-gke.100`) is too old; None if not.

    An unreadable version counts as new enough: dropped fields show it all the same.
    """
    result = re.match(r"v?(\d+)\.(\d+)\.(\d+)", git_version)
    if result is None or tuple(int(part) for part in result.groups()) >= FLOOR:
        return None
    return f"Kubernetes is {git_version}, below {'.'.join(str(part) for part in FLOOR)}"


def check_dropped_fields(paths: Iterable[str]) -> str | None:
    """Return why a server that changed these slice fields is too old; None if not."""
    needed = sorted({field for path in paths for field in _NEEDED if field in path})
    return f"the API server drops {', '.join(needed)}" if needed else None
