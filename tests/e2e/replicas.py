"""Controllers of a test's own, each behind a fault proxy of its own; killed and rotated at will."""

import base64
import collections
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import yaml

from driver import errors
from driver.kube import client, gvr
from hack.cluster import api, argv, state
from hack.cluster import errors as cluster_errors
from tests.fakes.faultproxy import own_lease, plan, proxy

ROOT = Path(__file__).parents[2]
_LEASE = ("ration-system", "ration-controller")
_CLUSTERS_OWN = ("controller-0", "controller-1", "controller-2")


class Replicas:
    """`with Replicas(...)`: the cluster's own controllers, processes or pods, rest meanwhile."""

    def __init__(
        self,
        cluster: api.Cluster,
        kube: client.KubeClient,
        folder: Path,
        choosers: tuple[plan.Chooser, ...],
        flags: tuple[str, ...] = (),
    ) -> None:
        self._cluster = cluster
        self._kube = kube
        self._folder = folder
        self._flags = flags
        self.token = folder / "token"
        url, authority = self._server()
        self.proxies = [proxy.FaultProxy(url, chooser, authority) for chooser in choosers]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._resting: list[str] = []
        self.starts = 0
        self.kills = 0
        self.rotations = 0

    def __enter__(self) -> Self:
        if self._cluster.driver is state.Driver.PODS:
            self._scale(0)
        for name in _CLUSTERS_OWN:
            if self._runs(name):
                self._cluster.stop(name)
                self._resting.append(name)
        self.rotate()
        for index, between in enumerate(self.proxies):
            between.__enter__()
            self.start(index)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for between in self.proxies:
            between.__exit__()
        for name in self._resting:
            self._cluster.start(name)
        if self._cluster.driver is state.Driver.PODS:
            self._scale(2)

    def _scale(self, count: int) -> None:
        """Have so many of the release's controllers run."""
        namespace, name = _LEASE
        self._cluster.kubectl("scale", "deployment", name, f"--replicas={count}", "-n", namespace)
        words = ("rollout", "status", "deployment", name, "-n", namespace, "--timeout=90s")
        self._cluster.kubectl(*words)

    def start(self, index: int) -> None:
        """Start a replica; its log goes on in the same file."""
        folder = self._folder / f"replica-{index}"
        folder.mkdir(exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "driver.controller",
            f"--kubeconfig={self.proxies[index].kubeconfig(folder, self.token)}",
            f"--identity=replica-{index}",
            "--web-address=",
            *self._flags,
        ]
        with (folder / "log").open("ab") as log:
            self._processes[index] = subprocess.Popen(command, cwd=ROOT, stderr=log)
        self.starts += 1

    def revive(self) -> None:
        """Start again whoever has ended; a leader that loses its Lease ends itself."""
        for index, process in list(self._processes.items()):
            if process.poll() is not None:
                self.start(index)

    def roll(self) -> None:
        """End each replica as an upgrade does, and start it again before the next one ends."""
        for index, process in list(self._processes.items()):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.start(index)

    def kill_leader(self) -> bool:
        """SIGKILL whoever holds the Lease, if it is one of ours."""
        holder = self.holder()
        for index, process in self._processes.items():
            if holder.startswith(f"replica-{index}-") and process.poll() is None:
                process.kill()
                process.wait()
                self.kills += 1
                return True
        return False

    def rotate(self) -> None:
        """A new token in the file; the one before is refused from now on."""
        previous = self.token.read_text() if self.token.exists() else None
        fresh = self._cluster.kubectl(*argv.controller_token()).strip()
        self.token.write_text(fresh)
        if previous is not None:
            self.rotations += 1
            for between in self.proxies:
                between.refuse(previous)

    def transitions(self) -> int:
        """Return how often the Lease has changed hands since it was made."""
        return int(self._lease().get("leaseTransitions") or 0)

    def holder(self) -> str:
        """Whom the true Lease names."""
        return str(self._lease().get("holderIdentity") or "")

    def faults(self) -> dict[str, int]:
        """Return how many were met, by name, in all proxies."""
        return _summed(fault_proxy.faults for fault_proxy in self.proxies)

    def requests(self) -> dict[str, int]:
        """Return how many were made, by kind, through all proxies."""
        return _summed(fault_proxy.requests for fault_proxy in self.proxies)

    def logs(self, only: str = "*") -> str:
        """Return what all replicas wrote, or one of them by its number."""
        paths = sorted(self._folder.glob(f"replica-{only}/log"))
        return "".join(path.read_text() for path in paths)

    def believing(self, index: int) -> own_lease.OwnLease:
        """Before it is started: a replica that wins and keeps a Lease that nobody else sees."""
        lease = own_lease.OwnLease(*_LEASE)
        self.proxies[index].keep_lease(lease)
        return lease

    def give_lease(self, holder: str, transitions: int) -> None:
        """Write into the true Lease who holds it, as its next leader would."""
        body = {"spec": {"holderIdentity": holder, "leaseTransitions": transitions}}
        namespace, name = _LEASE
        self._kube.patch(gvr.LEASES, name, body, namespace=namespace)

    def calm(self) -> None:
        """No more faults."""
        for between in self.proxies:
            between.choose(plan.Script())

    def _lease(self) -> dict[str, Any]:
        try:
            lease = self._kube.get(gvr.LEASES, *reversed(_LEASE))
        except errors.NotFound:
            return {}
        return dict(lease.get("spec") or {})

    def _server(self) -> tuple[str, Path]:
        """The API server's address, and its authority as a file."""
        document = yaml.safe_load(self._cluster.kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        authority = self._folder / "authority.pem"
        authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        return str(cluster["server"]), authority

    def _runs(self, name: str) -> bool:
        try:
            return self._cluster.pid(name) is not None
        except cluster_errors.ClusterError:
            return False


def _summed(results: Iterable[collections.Counter[str]]) -> dict[str, int]:
    total: collections.Counter[str] = collections.Counter()
    for result in results:
        total.update(result)
    return dict(sorted(total.items()))
