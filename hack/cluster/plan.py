"""Addresses and ports of the cluster. Pure.

Everything lies in 198.18.0.0/15, set aside for test beds (RFC 2544), so that it meets no real
network. The machine takes the addresses of the API server and of the nodes on `lo`: nothing is
reachable from outside, and the cluster works without any network at all.
"""

import ipaddress
import re
from collections.abc import Callable, Sequence

from hack.cluster import errors

POD_NETWORK = "198.18.0.0/16"
SERVICE_NETWORK = "198.19.0.0/17"
API_SERVICE = "198.19.0.1"
DNS_SERVICE = "198.19.0.10"
API_ADDRESS = "198.19.255.1"
_NODE_NETWORK = ipaddress.IPv4Network("198.19.254.0/24")
MOST_NODES = 254
# Below the range from which Linux takes ports for outgoing connections (32768 and up) and below
# Kubernetes' node ports (30000-32767), so that a stopped component finds its port free again.
FIRST_PORT, LAST_PORT = 21000, 29999
CORE_LISTENERS = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager",
                  "kube-scheduler", "kube-proxy", "kube-proxy-health")  # fmt: skip
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LONGEST_NODE_NAME = 20


def pod_range(index: int) -> str:
    """The pods' addresses on the node of that index (from 0)."""
    return f"198.18.{index}.0/24"


def node_address(index: int) -> str:
    """The address of the node of that index (from 0)."""
    return str(_NODE_NETWORK[index + 1])


def node_names(count: int) -> tuple[str, ...]:
    """The names of the first nodes."""
    if not 1 <= count <= MOST_NODES:
        raise errors.ClusterError(f"--nodes {count}: expected 1 to {MOST_NODES}")
    return tuple(f"node-{number}" for number in range(count))


def check_node_name(name: str) -> None:
    """Refuse a name that Kubernetes or a socket's path could not carry."""
    if len(name) > LONGEST_NODE_NAME or not _NODE_NAME.fullmatch(name):
        raise errors.ClusterError(
            f"node name {name!r}: expected at most {LONGEST_NODE_NAME} of a-z, 0-9 and -, "
            "starting and ending with a letter or digit"
        )


def node_listeners(name: str) -> tuple[str, ...]:
    """The listeners of one node."""
    return (f"kubelet.{name}", f"plugin.{name}", f"mps.{name}")


def controller_listeners(count: int) -> tuple[str, ...]:
    """The metrics listeners of the controllers, and those of their pages."""
    return tuple(f"controller-{number}{what}" for number in range(count) for what in ("", "-page"))


def choose_ports(
    listeners: Sequence[str], taken: Sequence[int], is_free: Callable[[int], bool]
) -> dict[str, int]:
    """Give every listener a port of its own that is free now."""
    used = set(taken)
    candidates = (
        port for port in range(FIRST_PORT, LAST_PORT) if port not in used and is_free(port)
    )
    chosen: dict[str, int] = {}
    for listener in listeners:
        port = next(candidates, None)
        if port is None:
            raise errors.ClusterError(f"no free port for {listener} in {FIRST_PORT}-{LAST_PORT}")
        chosen[listener] = port
    return chosen


def parse_labels(pairs: Sequence[str]) -> dict[str, str]:
    """Read `key=value` arguments."""
    labels: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise errors.ClusterError(f"--label {pair!r}: expected key=value")
        labels[key] = value
    return labels


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Read `Name=true,Other=false`, as Kubernetes' components take it; "" is none."""
    gates: dict[str, bool] = {}
    for pair in text.split(",") if text else ():
        name, _, value = pair.partition("=")
        if not name or value not in {"true", "false"}:
            raise errors.ClusterError(f"--feature-gates {pair!r}: expected Name=true or Name=false")
        gates[name] = value == "true"
    return gates


def parse_taint(text: str) -> dict[str, str]:
    """Read `key=value:Effect` (`key:Effect` too) into a taint of the API."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not key or effect not in {"NoSchedule", "PreferNoSchedule", "NoExecute"}:
        raise errors.ClusterError(
            f"--taint {text!r}: expected key=value:NoSchedule, PreferNoSchedule or NoExecute"
        )
    return (
        {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}
    )
