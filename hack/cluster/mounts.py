"""The machine's mounts, read; those below the cluster's folders, undone."""

import dataclasses
import re
import subprocess
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclasses.dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/self/mountinfo: where, and what kind of filesystem."""

    point: Path
    kind: str


def parse(table: str) -> tuple[Mount, ...]:
    """Read mountinfo (proc_pid_mountinfo(5)): the kind is the first word after the dash."""
    found = []
    for line in table.splitlines():
        words = line.split(" ")
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), words[4])
        found.append(Mount(Path(point), words[words.index("-") + 1]))
    return tuple(found)


def below(folder: Path, table: str) -> tuple[Path, ...]:
    """The mount points at or below a folder, in the order in which they must go."""
    points = [mount.point for mount in parse(table) if mount.point.is_relative_to(folder)]
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
