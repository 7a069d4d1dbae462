"""kind itself: the one on PATH, or the pinned one."""

import re
import shutil
from pathlib import Path

from hack.cluster import errors, progress, shell, toolchain, versions

_VERSION = re.compile(r"\bkind v(\d+)\.(\d+)\.(\d+)")


def kind(steps: progress.Steps) -> Path:
    """The kind on PATH, if its version suffices, or the pinned one from the cache."""
    wanted = versions.load().sets()["kind"].version
    path = shutil.which("kind")
    if path is not None:
        try:
            text = shell.run((path, "version"), timeout=30)
        except errors.ClusterError:
            text = ""
        if suffices(text, wanted):
            return Path(path)
    return toolchain.program("kind", steps)


def suffices(text: str, wanted: str) -> bool:
    """Whether `kind version` printed a release at least as new as the wanted one."""
    match = _VERSION.search(text)
    least = _VERSION.search(f"kind {wanted}")
    return bool(match and least) and _number(match) >= _number(least)


def _number(match: re.Match[str] | None) -> tuple[int, ...]:
    return tuple(int(part) for part in match.groups()) if match else ()
