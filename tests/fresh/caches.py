"""Sizes of caches, and the seconds that filling them took."""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

_MIB = 1 << 20


def sizes(folders: Mapping[str, Path]) -> dict[str, int]:
    """Bytes of the files below each folder; 0 where there is none."""
    return {name: _size(folder) for name, folder in folders.items()}


def grown(previous: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return how much each grew, in MiB."""
    return {name: round((size - previous.get(name, 0)) / _MIB) for name, size in after.items()}


def timings(path: Path) -> dict[str, float]:
    """Seconds of the steps that fetched or built programs, the longest first."""
    with contextlib.suppress(OSError, ValueError):
        took = json.loads(path.read_text()).items()
        ours = [(name, float(s)) for name, s in took if name.startswith(("Build ", "Fetch "))]
        return dict(sorted(ours, key=lambda datas: -datas[1]))
    return {}


def _size(folder: Path) -> int:
    total = 0
    for location, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(location) / name).lstat().st_size
    return total
