"""Kubernetes' own example of a DRA driver beside ours, for tests of both: its real kubelet plugin.

Its account, its rights and its DeviceClass come from the chart in its own module (v0.4.0,
Apache-2.0). Its DaemonSet is left out: on each node a process stands for the pod, with a token that
carries the node's name as the pod's would. Several installations stand side by side, each under a
driver name of its own.
"""

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from hack.cluster import (
    argv,
    control,
    foreign_plugins,
    guests,
    layout,
    store,
)

TOOLS = "dra-example-driver"
NAMESPACE = "dra-example-driver"
PROGRAM = "dra-example-kubeletplugin"
# A pod that the process stands for, and a Service that would lead to no pod.
LEFT_OUT = ("DaemonSet", "Service")


class Profile(StrEnum):
    """The kind of devices: GPUs, NICs that are shared by bandwidth, CPUs of NUMA nodes."""

    GPU = "gpu"
    NET = "net"
    CPU = "cpu"


@dataclasses.dataclass(frozen=True, slots=True)
class Installation:
    """An installation of the driver: the devices that it publishes on each of its nodes.

    `driver_name` is also the DeviceClass's, `gpu.example.com` for the profile `gpu` unless it is
    given. `devices` is the number of GPUs or NICs; `partitions` cuts each GPU into so many
    parts with shared counters; `shared` lets several claims have a GPU. `flags` are more of the
    plugin's own (`--binding-conditions`, `--cpu-numa-nodes=2`).
    """

    profile: Profile = Profile.GPU
    driver_name: str = ""
    devices: int = 8
    partitions: int = 0
    shared: bool = False
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The driver's name, its DeviceClass's, and that of its component on each node."""
        return self.driver_name or f"{self.profile}.example.com"


def fetch() -> guests.Parts:
    """The driver, built the first time (a minute). CommandFailedError where it cannot be."""
    return guests.fetch(TOOLS, PROGRAM)


def install(where: layout.Layout, installation: Installation, nodes: Sequence[str]) -> None:
    """Build the driver if it is not there, apply its objects, and run its plugin on nodes.

    Returns when each kubelet has registered it and its devices are published. Raises ClusterError.
    """
    ports = store.running(where).ports
    parts = fetch()
    objects = _rendered(where, parts, installation)
    guests.apply(where, objects)
    account = (NAMESPACE, foreign_plugins.service_account(objects))
    for node in nodes:
        kubeconfig = foreign_plugins.access(where, installation.name, node, account, ports)
        words = command(parts.program, where.node(node), node, installation, kubeconfig)
        # The plugin shows it to containers, as KUBERNETES_NODE_NAME.
        control.launch(where, installation.name, node, words, {"NODE_NAME": node})
    for node in nodes:
        foreign_plugins.wait_served(where, node, installation.name)


def uninstall(where: layout.Layout, installation: Installation) -> None:
    """Stop the plugin on every node, and delete the objects. Raises ClusterError.

    What a real uninstallation leaves stays: the namespace, checkpoints, and for half a minute the
    slices, which the kubelets then delete.
    """
    foreign_plugins.stop(where, installation.name)
    objects = _rendered(where, fetch(), installation)
    guests.delete(where, guests.without(objects, "Namespace"))


def command(
    program: Path,
    folders: layout.NodeLayout,
    node: str,
    installation: Installation,
    kubeconfig: Path,
) -> argv.Argv:
    """The command line of the plugin of one node."""
    flags = {
        "--node-name": node,
        "--driver-name": installation.name,
        "--device-profile": installation.profile,
        "--num-devices": installation.devices,
        "--gpu-partitions": installation.partitions,
        "--gpu-allow-multiple-allocations": str(installation.shared).lower(),
        "--kubeconfig": kubeconfig,
        "--cdi-root": folders.cdi,
        "--kubelet-registrar-directory-path": folders.kubelet / "plugins_registry",
        "--kubelet-plugins-directory-path": folders.kubelet / "plugins",
    }
    words = (f"{flag}={value}" for flag, value in flags.items())
    return (str(program), *words, *installation.flags)


def values(installation: Installation) -> tuple[str, ...]:
    """Helm's flags for the chart's values."""
    return (
        f"--namespace={NAMESPACE}",
        f"--set=deviceProfile={installation.profile}",
        f"--set=driverName={installation.name}",
    )


def installed(chart: Sequence[guests.Object]) -> list[guests.Object]:
    """The chart's objects that are applied, with the namespace they lie in."""
    return [guests.a_namespace(NAMESPACE), *guests.without(chart, *LEFT_OUT)]


def _rendered(
    where: layout.Layout, parts: guests.Parts, installation: Installation
) -> list[guests.Object]:
    chart = parts.source / "deployments" / "helm" / TOOLS
    release = installation.name.replace(".", "-")
    return installed(guests.rendered(where, release, chart, *values(installation)))
