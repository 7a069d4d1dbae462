"""The machine's mounts, read; those below the cluster's folders, undone."""

import subprocess
from pathlib import Path

from driver.runtime.files import mounts


def below(folder: Path, table: str) -> tuple[Path, ...]:
    """The mount points at or below a folder, in the order in which they must go."""
    points = [
        mount.point for mount in mounts.parse_mountinfo(table) if mount.point.is_relative_to(folder)
    ]
    return tuple(reversed(points))


def read() -> str:
    """The table of this process."""
    return Path("/proc/self/mountinfo").read_text()


def undo(folder: Path) -> tuple[Path, ...]:
    """Unmount everything at or below a folder; what stayed is returned."""
    for point in below(folder, read()):
        # Lazily: a container that is being torn down may hold it for a moment longer.
        subprocess.run(["umount", "--lazy", str(point)], check=False, capture_output=True)
    return below(folder, read())
