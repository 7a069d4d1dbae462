"""The driver on a running cluster: its chart, simulated machines, plugins, controllers."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from hack.chart import helm
from hack.cluster import (
    access,
    argv,
    chart,
    control,
    errors,
    kubectl,
    layout,
    node,
    progress,
    state,
)
from hack.crds import kinds

DRIVER = "gpu.ration.dev"
_SLICES_S = 60.0
_SETTLE_S = 0.5
_CRDS_S = 30


def install(where: layout.Layout, cluster: state.ClusterState, steps: progress.Steps) -> None:
    """Install the driver by its chart; its pods, or processes in their place, are started."""
    with steps.step("Install the driver", 10):
        if cluster.driver is state.Driver.PODS:
            chart.install(where, *_settings(cluster))
        else:
            _start_processes(where, cluster)
    with steps.step("Wait for the devices", 5):
        for entry in cluster.nodes:
            wait_slices(where, entry.name, cluster.driver_components())


def _settings(cluster: state.ClusterState) -> tuple[str, ...]:
    """What the cluster was asked for, as the chart's values."""
    allocator = f"--set=allocator={cluster.nodes[0].allocator}"
    if not cluster.controllers:
        return (allocator, "--set=controller.enabled=false")
    return (allocator, f"--set=controller.replicas={cluster.controllers}")


def _start_processes(where: layout.Layout, cluster: state.ClusterState) -> None:
    apply_chart(where)
    _start_controllers(where, cluster)
    for entry in cluster.nodes:
        start_node(where, entry, cluster.ports)


def apply_chart(where: layout.Layout) -> None:
    """Apply what the chart renders to, in its order; controllers and plugins run beside it."""
    text = yaml.safe_dump_all(helm.without_workloads(), sort_keys=False)
    flags = ("--server-side", "--force-conflicts", "--field-manager=ration-cluster")
    kubectl.run(where, "apply", *flags, "--filename=-", standard_input=text)
    served = [f"crd/{kind.crd}" for kind in kinds.KINDS]
    kubectl.run(where, "wait", "--for=condition=Established", *served, f"--timeout={_CRDS_S}s")


def start_node(where: layout.Layout, entry: state.NodeState, ports: argv.Ports) -> None:
    """Make the node's simulated machine; start its process, the MPS supervisor, the plugin."""
    node.start_machine(where, entry)
    folders, name = where.node(entry.name), entry.name
    control.launch(where, "mps", name, argv.mps(sys.executable, folders, name, ports))
    _write_access(where, folders.config / "plugin", argv.plugin_token(name), ports)
    control.launch(where, "plugin", name, argv.plugin(sys.executable, folders, entry, ports))


def wait_slices(
    where: layout.Layout, name: str, components: Sequence[str], driver: str = DRIVER
) -> None:
    """Wait until a driver's devices of a node are published; its components live meanwhile."""
    selector = f"--field-selector=spec.nodeName={name},spec.driver={driver}"
    counts = "--output=jsonpath={.items[*].spec.pool.resourceSliceCount}"
    query = ("get", "resourceslices", selector, counts)

    def published() -> bool:
        for component in components:
            _check_alive(where, component, name)
        return is_whole(kubectl.run(where, *query))

    log = control.log_path(where, components[-1], name)
    kubectl.wait(f"the devices of {name} are published", published, _SLICES_S, log)


def is_whole(counts: str) -> bool:
    """Whether a pool has all its slices, of each of which `counts` has their number as it says."""
    found = counts.split()
    return bool(found) and set(found) == {str(len(found))}


def _start_controllers(where: layout.Layout, cluster: state.ClusterState) -> None:
    if not cluster.controllers:
        return
    _write_access(where, where.key("controller"), argv.controller_token(), cluster.ports)
    names = [f"controller-{number}" for number in range(cluster.controllers)]
    for name in names:
        command = argv.controller(sys.executable, where, name, cluster.ports)
        control.launch(where, name, None, command)
    time.sleep(_SETTLE_S)
    for name in names:
        _check_alive(where, name, None)


def _write_access(where: layout.Layout, stem: Path, request: argv.Argv, ports: argv.Ports) -> None:
    token, kubeconfig = stem.with_suffix(".token"), stem.with_suffix(".kubeconfig")
    access.write(where, token, kubeconfig, request, ports)


def _check_alive(where: layout.Layout, component: str, node: str | None) -> None:
    if control.condition(where, component, node) == "dead":
        log = control.log_path(where, component, node)
        raise errors.ClusterError(
            f"{component} {node or ''} ended; the end of {log}:\n{control.tail(log)}"
        )
