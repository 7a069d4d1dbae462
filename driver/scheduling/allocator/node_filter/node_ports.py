"""NodePorts: host ports of a pod must be free on the node. Pure."""

from driver.resources.core import pods
from driver.scheduling.snapshot import snapshot

_ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - compared, nothing binds


def rejection(use: snapshot.NodeUsage, pod: pods.Pod) -> str:
    """Return the first port that is taken, in words; "" if none is.

    An empty address is 0.0.0.0, which is every address; `::` is an address like any other.
    """
    for port in pod.host_ports:
        for taken in use.ports:
            if _ports_conflict(port, taken):
                return f"host port {port.port}/{port.protocol}"
    return ""


def _ports_conflict(port: pods.HostPort, taken: pods.HostPort) -> bool:
    if (port.protocol, port.port) != (taken.protocol, taken.port):
        return False
    requested, used = port.address or _ALL_ADDRESSES, taken.address or _ALL_ADDRESSES
    return requested == used or _ALL_ADDRESSES in (requested, used)
