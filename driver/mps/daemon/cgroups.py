"""Cgroups of the daemons, beside the kubelet's pods (cgroups(7), proc_pid_cgroup(5)).

The supervisor's container has the PID namespace of the node, and a runtime ends every process in
the cgroup of such a container with its first process. Both versions of cgroups are supported.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from driver.runtime.files import mounts

NAME = "ration-mps"
_PODS = "kubepods"
"""In the name of the kubelet's group of all pods: kubepods, kubelet-kubepods.slice."""
_VERSION_1, _VERSION_2 = "cgroup", "cgroup2"
_CPUSETS = ("cpuset.cpus", "cpuset.mems")


def leave_pod(pids: Iterable[int], host_root: Path) -> None:
    """Move processes of this pod out of it, in every hierarchy; outside of a pod they stay.

    Raises OSError.
    """
    own_cgroups = Path("/proc/self/cgroup").read_text()
    moved = tuple(pids)
    for group in beside_pods(own_cgroups, mounts.list_mounts(), host_root):
        make_group(group)
        for pid in moved:
            (group / "cgroup.procs").write_text(str(pid))


def beside_pods(
    own_cgroups: str, mounted: Iterable[mounts.Mount], host_root: Path
) -> tuple[Path, ...]:
    """Return the daemons' group in each hierarchy of the node in which `own_cgroups` is a pod's.

    `own_cgroups` is the text of /proc/<pid>/cgroup.
    """
    hierarchies = tuple(_hierarchies(mounted, host_root))
    return tuple(
        mount.point / parent / NAME
        for controllers, parent in _parents_of_pods(own_cgroups)
        for mount in hierarchies
        if _has_controllers(mount, controllers)
    )


def _parents_of_pods(own_cgroups: str) -> Iterator[tuple[str, PurePosixPath]]:
    """Yield each hierarchy's controllers, "" for the unified, and its pods' parent group."""
    for line in own_cgroups.splitlines():
        _, controllers, path = line.split(":", 2)
        names = PurePosixPath(path).parts[1:]
        depth = next((depth for depth, name in enumerate(names) if _PODS in name), None)
        if depth is not None:
            yield controllers, PurePosixPath(*names[:depth])


def _hierarchies(mounted: Iterable[mounts.Mount], host_root: Path) -> tuple[mounts.Mount, ...]:
    """Return the hierarchies of the node, as a whole: those below `host_root`, else any.

    A container's own mounts show only its own group in version 1.
    """
    kinds, whole = {_VERSION_1, _VERSION_2}, Path("/")
    complete = [mount for mount in mounted if mount.kind in kinds and mount.root == whole]
    folder = host_root / "sys/fs/cgroup"
    below = tuple(mount for mount in complete if mount.point.is_relative_to(folder))
    return below or tuple({mount.options: mount for mount in reversed(complete)}.values())


def _has_controllers(mount: mounts.Mount, controllers: str) -> bool:
    if not controllers:
        return mount.kind == _VERSION_2
    return mount.kind == _VERSION_1 and {*controllers.split(",")} <= {*mount.options}


def make_group(group: Path) -> None:
    """Create a group that accepts processes. Raises OSError.

    A new cpuset of version 1 has no CPUs, and accepts none: it gets its parent's.
    """
    group.mkdir(exist_ok=True)
    if (group / "cgroup.controllers").exists():
        return  # version 2: empty values are inherited
    for name in _CPUSETS:
        file = group / name
        if file.exists() and not file.read_text().strip():
            file.write_text((group.parent / name).read_text())
