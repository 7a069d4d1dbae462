"""The local cluster for tests and the demo: a handle on the one that is up."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from hack.cluster import (
    cgroups,
    chart,
    control,
    errors,
    example_driver,
    karpenter,
    kubectl,
    kueue,
    kwok,
    layout,
    membership,
    node,
    nvidia_driver,
    processes,
    reboot,
    state,
    store,
)


class Cluster:
    """The cluster of one checkout. Every call looks at the machine as it is now."""

    def __init__(self, where: layout.Layout) -> None:
        self._where = where

    @classmethod
    def load(cls, checkout: Path) -> Self:
        """The cluster of a checkout; NotUp if it is not up."""
        where = layout.Layout(checkout.resolve())
        store.running(where)
        return cls(where)

    @property
    def kubernetes(self) -> str:
        """The release line of Kubernetes it runs, as in versions.toml: "1.37"."""
        return store.running(self._where).kubernetes

    @property
    def driver(self) -> state.Driver:
        """How the driver runs on it."""
        return store.running(self._where).driver

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._where.kubeconfig

    @property
    def controller_kubeconfig(self) -> Path:
        """What the driver's controllers use: their service account's bound token."""
        return self._where.key("controller").with_suffix(".kubeconfig")

    @property
    def programs(self) -> Path:
        """The folder of Kubernetes' programs, kubectl among them."""
        return self._where.programs

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002 - subprocess' name for it
        """What kubectl printed; CommandFailedError with its words if it failed."""
        return kubectl.run(self._where, *args, standard_input=input)

    def helm(self, *words: str) -> str:
        """What helm printed; CommandFailedError with its words if it failed."""
        return chart.run(self._where, *words)

    def install(self, *flags: str, source: Path | None = None) -> None:
        """Install or upgrade the driver by a chart (this checkout's), with flags of helm's."""
        chart.install(self._where, *flags, **({"of": source} if source else {}))

    def proc(self, node: str) -> Path:
        """/proc as a node's processes see it: the machine's, which all nodes share."""
        self.node_dir(node)
        return Path("/proc")

    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(node.name for node in store.running(self._where).nodes)

    def node_dir(self, node: str) -> Path:
        """A node's short folder: kubelet/, cdi/, gpu/, state/ are in it."""
        if node not in self.nodes():
            raise errors.ClusterError(f"no node {node}; expected one of {', '.join(self.nodes())}")
        return self._where.node(node).root

    def start(self, component: str, node: str | None = None) -> None:
        """Start a component that was stopped or died, as it was started before."""
        control.start(self._where, component, node)

    def stop(self, component: str, node: str | None = None) -> None:
        """SIGTERM, and wait for the end."""
        control.stop(self._where, component, node)

    def kill(self, component: str, node: str | None = None) -> None:
        """SIGKILL, and wait for the end."""
        control.kill(self._where, component, node)

    def freeze(self, component: str, node: str | None = None) -> None:
        """SIGSTOP."""
        control.freeze(self._where, component, node)

    def thaw(self, component: str, node: str | None = None) -> None:
        """SIGCONT."""
        control.thaw(self._where, component, node)

    @contextlib.contextmanager
    def with_flags(self, component: str, *flags: str) -> Iterator[None]:
        """Meanwhile the component (one of no node) runs with more flags."""
        usual = control.read(self._where, component, None).spec.argv
        control.restart(self._where, component, (*usual, *flags))
        try:
            yield
        finally:
            control.restart(self._where, component, usual)

    def command(self, component: str, node: str | None = None) -> tuple[str, ...]:
        """The command line that a component is started with."""
        return control.read(self._where, component, node).spec.argv

    def restart(
        self,
        component: str,
        argv: Sequence[str],
        *,
        node: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start a component anew with another command line and more variables, from now on."""
        control.restart(self._where, component, argv, node=node, variables=variables)

    def processes(self, component: str, node: str | None = None) -> frozenset[int]:
        """The ids of a component's process and of all that it has started and that still run."""
        below = f"components/{processes.key(component, node)}"
        return cgroups.members(self._where.tag, below)

    def controllers(self) -> tuple[str, ...]:
        """The driver's controllers, as components."""
        components = store.running(self._where).components()
        return tuple(name for name, _ in components if name.startswith("controller-"))

    def pid(self, component: str, node: str | None = None) -> int | None:
        """The process id; none while it does not run."""
        return control.pid(self._where, component, node)

    def log_path(self, component: str, node: str | None = None) -> Path:
        """The component's log."""
        return control.log_path(self._where, component, node)

    def audited(self) -> Iterator[Mapping[str, Any]]:
        """Every request of the driver's accounts that is on file: audit.k8s.io/v1 Events."""
        path = self._where.audit
        for part in sorted(path.parent.glob(f"{path.stem}*{path.suffix}"), key=_written_at):
            for line in part.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # the last one may be half written
                    yield json.loads(line)

    def add_node(
        self,
        name: str,
        *,
        machine: str = "hgx-h100",
        allocator: str = "controller",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[str] = (),
        plugin_flags: Sequence[str] = (),
    ) -> None:
        """Add a node and wait until it is Ready (and its devices published)."""
        new = membership.NewNode(
            name=name,
            machine=machine,
            allocator=allocator,
            labels=labels or {},
            taints=tuple(taints),
            plugin_flags=tuple(plugin_flags),
        )
        membership.add(self._where, new)

    def start_kueue(self, configuration: Mapping[str, Any]) -> None:
        """Install real Kueue and run its manager as the component `kueue`; see `kueue.start`."""
        kueue.start(self._where, configuration)

    def start_karpenter(self, instance_types: Path, more: Mapping[str, str] | None = None) -> None:
        """Install real Karpenter and run it as the component `karpenter`; see `karpenter.start`.

        Its nodes are objects alone: `start_kwok` has something play their kubelets.
        """
        karpenter.start(self._where, instance_types, more or {})

    def start_kwok(self) -> None:
        """Run kwok as the component `kwok`, which plays the kubelets of nodes without machines."""
        kwok.start(self._where)

    def install_example_driver(
        self, installation: example_driver.Installation, *nodes: str
    ) -> None:
        """Install the real example driver, on every node unless some are named.

        Its plugin is the component of the driver's name on each; see `example_driver.install`.
        """
        example_driver.install(self._where, installation, nodes or self.nodes())

    def uninstall_example_driver(self, installation: example_driver.Installation) -> None:
        """Stop the example driver on every node, and delete its objects."""
        example_driver.uninstall(self._where, installation)

    def install_nvidia_driver(self, folder: Path, *nodes: str, gates: Sequence[str] = ()) -> None:
        """Install NVIDIA's own DRA driver from a folder, on every node unless some are named.

        Its plugin is the component `gpu.nvidia.com` on each; see `nvidia_driver.install`.
        """
        nvidia_driver.install(self._where, folder, nodes or self.nodes(), *gates)

    def uninstall_nvidia_driver(self, folder: Path) -> None:
        """Stop NVIDIA's driver on every node, and delete its objects."""
        nvidia_driver.uninstall(self._where, folder)

    def load_image(self, archive: Path) -> None:
        """Have every node's containers find the image of an archive."""
        for name in self.nodes():
            node.load_images(self._where, name, [archive])

    def reboot(self, node: str, furnish: Callable[[], None] | None = None) -> None:
        """Cut a node's power and boot it; it is Ready some seconds later. See `reboot.reboot`."""
        reboot.reboot(self._where, node, furnish)

    def remove_node(self, name: str) -> None:
        """Take a node away as if its machine were gone."""
        membership.remove(self._where, name)


def _written_at(path: Path) -> float:
    return path.stat().st_mtime
