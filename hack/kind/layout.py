"""Where everything of a kind cluster lies. Pure: paths only, nothing is touched.

In the checkout, `.kind/NAME/` holds a machine for each worker, the kubeconfig and a view of each
node. What is slow to make lies outside, in the cache.
"""

import dataclasses
from pathlib import Path

from hack.cluster import toolchain
from hack.cluster.layout import HOST_ROOT

LAB = Path("/opt/ration-lab")
"""Where a node shows its simulated machine and the program that runs it."""
MACHINE = LAB / "machine"
RUNTIME = LAB / "runtime"
_DRIVER_ROOT = Path("/run/nvidia/driver")
SOCKET_BYTES = 107
"""The longest path of a Unix socket."""


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files of a checkout's cluster of one name."""

    checkout: Path
    name: str

    @property
    def dot(self) -> Path:
        """`.kind/` of the checkout."""
        return self.checkout / ".kind"

    @property
    def home(self) -> Path:
        """All of this cluster."""
        return self.dot / self.name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way in."""
        return self.home / "kubeconfig"

    @property
    def created(self) -> Path:
        """There once kind said that the cluster is made; holds what it was made of."""
        return self.home / "created.json"

    @property
    def begun(self) -> Path:
        """There once a run began to make the cluster."""
        return self.home / "begun"

    @property
    def inotify(self) -> Path:
        """The machine's limit of inotify instances from before; there if `up` raised it."""
        return self.home / "inotify"

    @property
    def nodes(self) -> Path:
        """A folder per worker with links to the driver's folders of that node."""
        return self.home / "nodes"

    def machine(self, worker: str) -> Path:
        """The simulated machine of a worker."""
        return self.home / worker

    def mounts(self, worker: str, cache: "Cache") -> dict[Path, Path]:
        """What a worker shows, by the path inside: the driver's files twice, as pods.yaml asks."""
        machine = self.machine(worker)
        return {
            HOST_ROOT: machine / "host-root",
            _DRIVER_ROOT: machine / "driver-root",
            HOST_ROOT / _DRIVER_ROOT.relative_to("/"): machine / "driver-root",
            MACHINE: machine,
            RUNTIME: cache.simulators,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Cache:
    """The folders outside the checkout that every checkout shares."""

    root: Path

    @classmethod
    def of_user(cls) -> "Cache":
        """The cache of this user."""
        return cls(toolchain.cache_root() / "kind")

    @property
    def lock(self) -> Path:
        """Held while something about a cluster of kind changes."""
        return self.root / "lock"

    @property
    def daemon(self) -> Path:
        """All that a Docker daemon of our own has."""
        return self.root / "daemon"

    @property
    def socket(self) -> Path:
        """Where a daemon of our own is asked."""
        return self.daemon / "docker.sock"

    @property
    def simulators(self) -> Path:
        """What machines' services run in: a folder for each state of the simulator."""
        return self.root / "simulators"

    @property
    def parts(self) -> Path:
        """What node images are made of."""
        return self.root / "parts"
