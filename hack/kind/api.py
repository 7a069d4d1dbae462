"""A cluster of kind for tests: the calls of `hack.cluster.api.Cluster`, answered by kind.

Nodes are its workers. The driver runs as its chart's pods, so it has no components to stop; of
Kubernetes' own only kube-scheduler can be. What kind cannot do is a ClusterError that says so.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Never, Self

from hack.chart import helm
from hack.cluster import api, errors, kubectl, progress, state, versions
from hack.image import oci
from hack.kind import daemon as daemons
from hack.kind import docker, driver, facts, kube, layout, plan, programs, record

_SCHEDULER = "kube-scheduler"
_MANIFESTS = "/etc/kubernetes/manifests"
_AWAY = "/etc/kubernetes/kube-scheduler.yaml"
_RESTART_S, _READY_S = 120.0, 300.0
VIEWS = {
    "cdi": "run/cdi",
    "kubelet": "var/lib/kubelet",
    "state": "var/lib/ration",
}
"""Folders of a node's view, and where the node has them."""


class Cluster(api.Cluster):
    """The kind cluster of a checkout. Every call looks at it as it is now."""

    def __init__(self, where: layout.Layout, daemon: docker.Docker) -> None:
        self._home = where
        self._docker = daemon

    @classmethod
    def load(cls, checkout: Path, name: str = "ration") -> Self:
        """The cluster of a checkout; NotUp if it is not up."""
        where = layout.Layout(checkout.resolve(), name)
        kept = record.read(where)
        if kept is None:
            raise errors.ClusterError(
                f"no kind cluster {name} of {checkout} is up; start one with: make kind-up"
            )
        cache = layout.Cache.of_user()
        return cls(where, daemons.choose(cache, own=False, recorded=kept.host))

    @property
    def kubernetes(self) -> str:
        """The release line of Kubernetes it runs."""
        return versions.load().default

    @property
    def driver(self) -> state.Driver:
        """How the driver runs on it."""
        return state.Driver.PODS

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._home.kubeconfig

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002 - as the other's
        """What kubectl printed; CommandFailedError with its words if it failed."""
        return kube.run(self._home, *args, standard_input=input)

    def helm(self, *words: str) -> str:
        """What helm printed; CommandFailedError with its words if it failed."""
        return driver.run_helm(self._home, *words)

    def install(self, *flags: str, source: Path | None = None) -> None:
        """Install or upgrade the driver by a chart (this checkout's), with flags of helm's."""
        driver.install(self._home, *flags, of=source or helm.CHART)

    def nodes(self) -> tuple[str, ...]:
        """The names of the workers."""
        return tuple(node for node, role in self._roles().items() if role == plan.WORKER)

    def node_dir(self, node: str) -> Path:
        """A worker's folder: kubelet/, cdi/, gpu/, state/ are in it, as links."""
        self._check(node)
        folder = self._home.nodes / node
        folder.mkdir(parents=True, exist_ok=True)
        root = self.proc(node).parent
        links = {"gpu": self._home.machine(node), **{k: root / v for k, v in VIEWS.items()}}
        for name, target in links.items():
            link = folder / name
            if not link.is_symlink() or link.readlink() != target:
                link.unlink(missing_ok=True)
                link.symlink_to(target)
        return folder

    def proc(self, node: str) -> Path:
        """/proc of a worker, whose processes have numbers of their own."""
        self._check(node)
        (raw,) = self._docker.inspect("container", node)
        return Path(f"/proc/{raw['State']['Pid']}/root/proc")

    def load_image(self, archive: Path) -> None:
        """Have every node find the image of an archive, by its name and by its digest."""
        kind = programs.kind(progress.quiet())
        nodes = tuple(self._roles())
        driver.load_archive(self._docker, kind, self._home, archive, nodes)
        name, digest = oci.name_of(archive), oci.digest_of(archive)
        for node in nodes:
            driver.tag(self._docker, node, name, f"{driver.repository(name)}@{digest}")

    def reboot(self, node: str, furnish: Callable[[], None] | None = None) -> None:
        """Start a node's container again; it is Ready when this returns."""
        if furnish is not None:
            raise errors.ClusterError("a node of kind cannot be furnished while it boots")
        self._check(node)
        self._docker.run("restart", node, timeout=_RESTART_S)
        kubectl.wait("every node is Ready", lambda: kube.is_ready(self._home), _READY_S)

    def stop(self, component: str, node: str | None = None) -> None:  # noqa: ARG002 - as the other's
        """End kube-scheduler, and wait until it is gone."""
        self._move(component, f"{_MANIFESTS}/{_SCHEDULER}.yaml", _AWAY)
        kubectl.wait(f"{component} is gone", lambda: not self._scheduler(), _READY_S)

    def start(self, component: str, node: str | None = None) -> None:  # noqa: ARG002 - as the other's
        """Start kube-scheduler again."""
        self._move(component, _AWAY, f"{_MANIFESTS}/{_SCHEDULER}.yaml")
        kubectl.wait(f"{component} runs", lambda: bool(self._scheduler()), _READY_S)

    def _roles(self) -> dict[str, str]:
        containers = facts.containers(self._docker, self._home.name)
        return {
            str(raw["Name"]).lstrip("/"): raw["Config"]["Labels"][facts.ROLE_LABEL]
            for raw in containers
        }

    def _check(self, node: str) -> None:
        if node not in self.nodes():
            raise errors.ClusterError(f"no node {node}; expected one of {', '.join(self.nodes())}")

    def _move(self, component: str, source: str, target: str) -> None:
        if component != _SCHEDULER:
            raise errors.ClusterError(f"of a cluster of kind {component} cannot be stopped")
        self._docker.inside(self._control_plane(), "mv", source, target)

    def _control_plane(self) -> str:
        return next(node for node, role in self._roles().items() if role == plan.CONTROL_PLANE)

    def _scheduler(self) -> str:
        words = ("crictl", "ps", "--quiet", "--state=running", f"--name=^{_SCHEDULER}$")
        return self._docker.inside(self._control_plane(), *words).strip()

    @property
    def _where(self) -> Never:  # type: ignore[override]
        """What all other calls begin with."""
        raise errors.ClusterError("a cluster of kind cannot do this: use the local cluster for it")
