"""The network of a named cluster: a network namespace, kept by a file and entered at one point.

Addresses, ports and kube-proxy's tables are fixed or chosen, and each is there once a network. The
unnamed cluster has the machine's; a named one has one of its own, which reaches nothing outside.
What is started from inside is inside: components, tests, and what these start.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from hack.cluster import errors, layout, plan, shell

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


def outside(where: layout.Layout, command: Sequence[str]) -> tuple[str, ...]:
    """A command that is to reach package indexes: from inside, it goes to the machine's network."""
    before = ("nsenter", f"--net={_machine(where)}", "--") if is_inside(where) else ()
    return (*before, *command)


def require(where: layout.Layout) -> None:
    """Refuse to act on a named cluster from another network; ClusterError says what to do."""
    if where.name and not is_inside(where):
        raise errors.ClusterError(
            f"cluster {where.name} has a network of its own, and this process is not in it: begin "
            "the command with python -m hack.cluster run --"
        )


def remove(where: layout.Layout) -> None:
    """Take the namespace away; it ends with the last process in it."""
    for kept in (where.network, _machine(where)):
        if os.path.ismount(kept):
            shell.run(("umount", str(kept)))
        kept.unlink(missing_ok=True)


def _make(where: layout.Layout) -> None:
    where.network.parent.mkdir(parents=True, exist_ok=True)
    for kept in (_machine(where), where.network):
        kept.touch()
    shell.run(("mount", "--bind", str(_OWN), str(_machine(where))))
    shell.run(("unshare", f"--net={where.network}", "ip", "link", "set", "lo", "up"))
    # A connection to a service needs a route before kube-proxy's tables turn it to a pod.
    route = ("ip", "route", "add", plan.SERVICE_NETWORK, "dev", "lo")
    shell.run(("nsenter", f"--net={where.network}", "--", *route))


def _machine(where: layout.Layout) -> Path:
    """Keeps the network that the cluster's was made from, for who has gone into the cluster's."""
    return where.network.with_suffix(".machine")
