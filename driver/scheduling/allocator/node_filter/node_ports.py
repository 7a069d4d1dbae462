"""NodePorts: host ports of a pod must be free on the node. Pure."""

from driver.resources.core import pods
from driver.scheduling.snapshot import snapshot

_ALL = "0.0.0.0"  # noqa: S104 - compared, nothing binds


def objection(use: snapshot.NodeUsage, pod: pods.Pod) -> str:
    """The first port that is taken, in words; "" where none is.

    An address that is not named is 0.0.0.0, which is every address; `::` is one like any other.
    """
    for port in pod.host_ports:
        for taken in use.ports:
            if _collide(port, taken):
                return f"host port {port.port}/{port.protocol}"
    return ""


def _collide(port: pods.HostPort, taken: pods.HostPort) -> bool:
    if (port.protocol, port.port) != (taken.protocol, taken.port):
        return False
    mine, theirs = port.address or _ALL, taken.address or _ALL
    return mine == theirs or _ALL in (mine, theirs)
