"""Marks that the cluster leaves on the machine outside its own folders, and their removal."""

import contextlib
import json
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from hack.cluster import errors, layout, plan, shell

# Written by the kubelet, kube-proxy and the network plugins; put back by `down`.
SYSCTLS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/conf/all/forwarding",
    "net/ipv4/ip_forward",
    "net/netfilter/nf_conntrack_tcp_be_liberal",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
# Fixed in the programs' sources; removed by `down` when they are new and empty.
FOLDERS = (
    "/opt/cni/bin", "/opt/cni", "/etc/cni/net.d", "/etc/cni",
    "/run/containerd/s", "/run/containerd", "/var/lib/cni/results", "/var/lib/cni",
    "/var/lib/kubelet/device-plugins", "/var/lib/kubelet", "/var/log/containers",
    "/var/log/pods", "/run/netns", "/run/flannel", "/run/xtables.lock",
    "/etc/kubernetes/manifests", "/etc/kubernetes",
    "/run/cdi", "/run/nvidia/driver", "/run/nvidia", "/run/ration-lab/host", "/run/ration-lab",
    "/var/lib/ration",
)  # fmt: skip
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
_TABLES = (("ip", "kube-proxy"), ("ip6", "kube-proxy"))


def read_sysctls() -> dict[str, str]:
    """The machine's values now; a kernel may lack some."""
    values: dict[str, str] = {}
    for name in SYSCTLS:
        with contextlib.suppress(OSError):
            values[name] = Path("/proc/sys", name).read_text().strip()
    return values


def restore_sysctls(values: Mapping[str, str]) -> None:
    """Put the machine's values back."""
    now = read_sysctls()
    for name, value in values.items():
        if now.get(name, value) != value:
            Path("/proc/sys", name).write_text(value)


def absent_folders() -> tuple[str, ...]:
    """Which of the fixed folders do not exist yet."""
    return tuple(name for name in FOLDERS if not Path(name).exists())


def add_address(address: str) -> None:
    """Give the machine an address that only it can reach."""
    shell.run(("ip", "address", "replace", f"{address}/32", "dev", "lo"))


def remove_addresses(addresses: Iterable[str]) -> None:
    """Take the addresses away, those that are there."""
    shown = json.loads(shell.run(("ip", "-json", "address", "show", "dev", "lo")) or "[]")
    present = {entry["local"] for link in shown for entry in link.get("addr_info", ())}
    for address in set(addresses) & present:
        shell.run(("ip", "address", "del", f"{address}/32", "dev", "lo"))


def all_addresses() -> tuple[str, ...]:
    """Every address that a cluster can have taken."""
    return (plan.API_ADDRESS, *(plan.node_address(index) for index in range(plan.MOST_NODES)))


def is_free(port: int) -> bool:
    """Whether nothing listens on a port, on any address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def refuse_foreign_proxy() -> None:
    """Kubernetes' service rules have one name on a machine; another cluster's stay untouched."""
    if any(_has_table(*table) for table in _TABLES):
        raise errors.ClusterError(
            "nftables has a table kube-proxy that is not ours: another Kubernetes runs here"
        )


def remove_tables() -> None:
    """Delete kube-proxy's nftables tables."""
    for family, name in _TABLES:
        if _has_table(family, name):
            shell.run(("nft", "delete", "table", family, name))


def _has_table(family: str, name: str) -> bool:
    if shutil.which("nft") is None:
        return False
    # Listing one table by name, and not all of them: that is what the exit status tells.
    listed = subprocess.run(
        ["nft", "-t", "list", "table", family, name], check=False, capture_output=True
    )
    return listed.returncode == 0


def network_name(tag: str, node: str) -> str:
    """The name of a node's pod network; the network plugins' cache carries it."""
    return f"ration-{tag}-{node}"


def remove_foreign_files(where: layout.Layout, absent: Iterable[str], node: str = "") -> None:
    """Delete what the programs wrote into fixed folders, and those folders that are new."""
    prefix = network_name(where.tag, node)
    for cached in Path("/var/lib/cni/results").glob(f"{prefix}*"):
        cached.unlink(missing_ok=True)
    root = where.node(node).root if node else where.home
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(root):
            link.unlink(missing_ok=True)
    gone = set(absent)
    if str(_DEVICE_PLUGINS) in gone:
        for name in ("kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION"):
            (_DEVICE_PLUGINS / name).unlink(missing_ok=True)
    for name in FOLDERS:
        if name in gone:
            with contextlib.suppress(OSError):
                Path(name).rmdir()
