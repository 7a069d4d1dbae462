"""Control groups of the cluster: how `down` finds each process, container and shim it must end.

Every component starts in a group of its own below one group that carries the cluster's tag, and
every container's group hangs below that one too. Children stay where their parent was, so what is
in these groups is the cluster's, and nothing else is. cgroup v1, v2 and both at once are served.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from driver.runtime.files import mounts


def group_name(tag: str) -> str:
    """The cluster's own group, relative to a hierarchy's root."""
    return f"ration-{tag}"


def pods_group(tag: str, node: str) -> str:
    """The kubelet's cgroupRoot: below it are the containers of one node."""
    return f"/{group_name(tag)}/pods/{node}"


def hierarchies(table: str) -> tuple[Path, ...]:
    """The roots of the mounted hierarchies, v2 first, from /proc/self/mountinfo's text."""
    found = [
        mount for mount in mounts.parse_mountinfo(table) if mount.kind in {"cgroup", "cgroup2"}
    ]
    found.sort(key=lambda mount: (mount.kind != "cgroup2", str(mount.point)))
    return tuple(mount.point for mount in found)


def component_group(tag: str, key: str) -> Path:
    """Make and return the group in which a component starts."""
    root = next(iter(_roots()))
    group = root / group_name(tag) / "components" / key
    group.mkdir(parents=True, exist_ok=True)
    return group


def prepare_pods(tag: str, node: str) -> None:
    """Make the kubelet's cgroupRoot in every hierarchy, with the controllers passed down (v2)."""
    for root in _roots():
        group = root
        for name in pods_group(tag, node).strip("/").split("/"):
            offered = group / "cgroup.controllers"
            names = offered.read_text().split() if offered.exists() else []
            if names:
                passed = " ".join(f"+{name}" for name in names)
                (group / "cgroup.subtree_control").write_text(passed)
            group /= name
            group.mkdir(exist_ok=True)


def members(tag: str, below: str = "") -> frozenset[int]:
    """The ids of all processes in the cluster's groups (only those below `below`, if given)."""
    return frozenset(pid for group in _groups(tag, below) for pid in _read(group))


def remove(tag: str, below: str = "") -> tuple[Path, ...]:
    """Remove the empty groups, deepest first; those that would not go are returned."""
    left: list[Path] = []
    for group in _groups(tag, below):
        try:
            group.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            left.append(group)
    return tuple(left)


def _roots() -> tuple[Path, ...]:
    return hierarchies(Path("/proc/self/mountinfo").read_text())


def _groups(tag: str, below: str) -> Iterator[Path]:
    for root in _roots():
        top = root / group_name(tag) / below
        for folder, _, _ in os.walk(top, topdown=False):
            yield Path(folder)


def _read(group: Path) -> tuple[int, ...]:
    with contextlib.suppress(OSError):
        return tuple(int(line) for line in (group / "cgroup.procs").read_text().split())
    return ()
