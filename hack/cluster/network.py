"""The network of a named cluster: a network namespace, kept by a file and entered at one point.

Addresses, ports and kube-proxy's tables are fixed or chosen, and each is there once a network. The
unnamed cluster has the machine's; a named one has one of its own, which reaches nothing outside.
What is started from inside is inside: components, tests, and what these start.
"""

import ctypes
import os
from pathlib import Path

from hack.cluster import errors, layout, shell

_CLONE_NEWNET = 0x40000000
_OWN = Path("/proc/self/ns/net")


def exists(where: layout.Layout) -> bool:
    """Whether the cluster has a namespace of its own, now."""
    return os.path.ismount(where.network)


def is_inside(where: layout.Layout) -> bool:
    """Whether this process is in it."""
    return exists(where) and os.path.samestat(where.network.stat(), _OWN.stat())


def enter(where: layout.Layout) -> bool:
    """Go into the cluster's network, made if it is not there; whether that was a move.

    The calling thread goes, and what it starts from now on: call it before there are others.
    Raises ClusterError.
    """
    if not where.name or is_inside(where):
        return False
    if not exists(where):
        _make(where)
    descriptor = os.open(where.network, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
            code = ctypes.get_errno()
            raise errors.ClusterError(f"network of cluster {where.name}: {os.strerror(code)}")
    finally:
        os.close(descriptor)
    return True


def require(where: layout.Layout) -> None:
    """Refuse to act on a named cluster from another network; ClusterError says what to do."""
    if where.name and not is_inside(where):
        raise errors.ClusterError(
            f"cluster {where.name} has a network of its own, and this process is not in it: begin "
            "the command with python -m hack.cluster run --"
        )


def remove(where: layout.Layout) -> None:
    """Take the namespace away; it ends with the last process in it."""
    if exists(where):
        shell.run(("umount", str(where.network)))
    where.network.unlink(missing_ok=True)


def _make(where: layout.Layout) -> None:
    where.network.parent.mkdir(parents=True, exist_ok=True)
    where.network.touch()
    shell.run(("unshare", f"--net={where.network}", "ip", "link", "set", "lo", "up"))
