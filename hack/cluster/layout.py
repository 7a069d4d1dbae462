"""Where everything of a local cluster lies. Paths only, nothing is touched.

A cluster has a name. The one without stands in the machine's own network; any other has a network
of its own (`network`), so that several stand side by side.

In the checkout, `.cluster/` holds what people and tests use. Outside, a short home holds what
needs short paths (a Unix socket's path ends at 107 bytes) and what must be found again when the
checkout is gone.
"""

import dataclasses
import hashlib
import os
import re
from pathlib import Path

from hack.cluster import errors

BASE = Path("/var/lib/ration-lab")
"""Not /var/lib/ration: that is the driver's own, on every node."""
KUBELET = Path("/var/lib/kubelet")
HOST_ROOT = Path("/run/ration-lab/host")
"""Where a node's namespace shows the simulated machine's /proc, /sys and /dev."""

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")


@dataclasses.dataclass(frozen=True, slots=True)
class NodeLayout:
    """The folders of one node, all below `root`."""

    root: Path

    @property
    def kubelet(self) -> Path:
        """The kubelet's root-dir: plugins/ and plugins_registry/ are in it."""
        return self.root / "kubelet"

    @property
    def cdi(self) -> Path:
        """CDI specs that this node's containerd reads."""
        return self.root / "cdi"

    @property
    def containerd(self) -> Path:
        """Images and snapshots."""
        return self.root / "containerd"

    @property
    def run(self) -> Path:
        """What containerd and runc keep while containers run."""
        return self.root / "run"

    @property
    def socket(self) -> Path:
        """The CRI socket."""
        return self.root / "containerd.sock"

    @property
    def gpu(self) -> Path:
        """The simulated machine."""
        return self.root / "gpu"

    @property
    def state(self) -> Path:
        """The kubelet plugin's own records."""
        return self.root / "state"

    @property
    def mps(self) -> Path:
        """The MPS supervisor's files; short, as sockets lie deep in it: 107 bytes is the most."""
        return self.root / "m"

    @property
    def config(self) -> Path:
        """Configuration files, certificates and tokens of this node (mode 0700)."""
        return self.root / "config"

    @property
    def network(self) -> Path:
        """The CNI configuration."""
        return self.root / "cni"

    @property
    def pod_logs(self) -> Path:
        """Container logs."""
        return self.root / "pods"

    @property
    def namespace(self) -> Path:
        """The file that keeps the node's mount namespace."""
        return self.root / "ns" / "mnt"

    def views(self) -> tuple[tuple[Path, Path], ...]:
        """Which of these folders the node's namespace shows, and where a real node has them.

        The driver's files are where a driver container has them, of the simulated host too.
        """
        driver_root, usual = self.gpu / "driver-root", Path("/run/nvidia/driver")
        return (
            (self.kubelet, KUBELET),
            (self.cdi, Path("/run/cdi")),
            (self.state, Path("/var/lib/ration")),
            (self.gpu / "host-root", HOST_ROOT),
            (driver_root, usual),
            (driver_root, HOST_ROOT / usual.relative_to("/")),
        )

    def folders(self) -> tuple[Path, ...]:
        """What must exist before the node starts."""
        return (self.kubelet, self.cdi, self.containerd, self.run, self.state,
                self.config, self.network, self.pod_logs)  # fmt: skip


def _chosen_name() -> str:
    return os.environ.get("RATION_CLUSTER", "")


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files of a cluster of one checkout.

    `name` is RATION_CLUSTER of the environment unless it is given. Raises ClusterError where it is
    no name.
    """

    checkout: Path
    base: Path = BASE
    name: str = dataclasses.field(default_factory=_chosen_name)

    def __post_init__(self) -> None:
        if self.name and not _NAME.fullmatch(self.name):
            raise errors.ClusterError(
                f"cluster name {self.name!r} (RATION_CLUSTER): expected 1 to 12 of a-z and 0-9, a "
                "letter first"
            )

    @property
    def tag(self) -> str:
        """Six hex digits that stand for the checkout and the name in names and paths."""
        whole = f"{self.checkout}#{self.name}" if self.name else str(self.checkout)
        return hashlib.sha256(whole.encode()).hexdigest()[:6]

    @property
    def network(self) -> Path:
        """The file that keeps a named cluster's network namespace; it outlives `home`."""
        return self.base / "networks" / self.tag

    @property
    def home(self) -> Path:
        """The short folder outside the checkout."""
        return self.base / self.tag

    @property
    def marker(self) -> Path:
        """Names the checkout whose cluster has this name on the machine."""
        return self.base / (f"owner-{self.name}.json" if self.name else "owner.json")

    @property
    def lock(self) -> Path:
        """Held while something about the cluster changes."""
        return self.base / "lock"

    @property
    def state(self) -> Path:
        """What the cluster is, as `state.ClusterState`."""
        return self.home / "state.json"

    @property
    def keys(self) -> Path:
        """Certificates, private keys, kubeconfigs of the control plane (mode 0700)."""
        return self.home / "keys"

    @property
    def etcd(self) -> Path:
        """Etcd's data."""
        return self.home / "etcd"

    @property
    def shims(self) -> Path:
        """The sockets of containerd's shims; containerd takes 42 bytes at most."""
        return self.home / "s"

    @property
    def dot(self) -> Path:
        """`.cluster/` of the checkout, `.cluster/named/NAME` of a named one."""
        dot = self.checkout / ".cluster"
        return dot / "named" / self.name if self.name else dot

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way in."""
        return self.dot / "kubeconfig"

    @property
    def programs(self) -> Path:
        """Links to every program of the cluster, kubectl among them."""
        return self.dot / "bin"

    def program(self, name: str) -> Path:
        """A program of the cluster, of the Kubernetes it was brought up with."""
        return self.programs / name

    @property
    def logs(self) -> Path:
        """One log a component; they outlive the cluster until the next one starts."""
        return self.dot / "logs"

    @property
    def audit(self) -> Path:
        """What our accounts asked of the API server; older parts lie beside it."""
        return self.logs / "audit.log"

    @property
    def records(self) -> Path:
        """One record a component: how it is started, and which process it is."""
        return self.dot / "run"

    @property
    def nodes(self) -> Path:
        """A link per node to its short folder."""
        return self.dot / "nodes"

    def node(self, name: str) -> NodeLayout:
        """The folders of one node."""
        return NodeLayout(self.home / "n" / name)

    def key(self, name: str) -> Path:
        """One file among the keys."""
        return self.keys / name
