"""The driver on a running cluster: its chart, simulated machines, plugins, controllers."""

import sys
import time
from pathlib import Path

import yaml

from hack.chart import helm
from hack.cluster import (
    argv,
    certificates,
    control,
    errors,
    kubectl,
    layout,
    progress,
    shell,
    state,
)

DRIVER = "gpu.ration.dev"
_SLICES_S = 60.0
_SETTLE_S = 0.5


def install(where: layout.Layout, cluster: state.ClusterState, steps: progress.Steps) -> None:
    """Install the driver as its chart says, but its pods, and start its processes."""
    with steps.step("Install the driver", 10):
        apply_chart(where)
        _start_controllers(where, cluster)
        for node in cluster.nodes:
            start_node(where, node, cluster.ports)
    with steps.step("Wait for the devices", 5):
        for node in cluster.nodes:
            wait_slices(where, node.name)


def apply_chart(where: layout.Layout) -> None:
    """Apply what the chart renders to, in its order; controllers and plugins run beside it."""
    text = yaml.safe_dump_all(helm.without_workloads(), sort_keys=False)
    flags = ("--server-side", "--force-conflicts", "--field-manager=ration-cluster")
    kubectl.run(where, "apply", *flags, "--filename=-", standard_input=text)


def start_node(where: layout.Layout, node: state.NodeState, ports: argv.Ports) -> None:
    """Make the node's simulated machine; start its process, the MPS supervisor, the plugin."""
    folders = where.node(node.name)
    shell.run(argv.gpu_create(sys.executable, folders, node), cwd=where.checkout, timeout=120)
    control.launch(where, "gpu", node.name, argv.gpu(sys.executable, folders))
    control.launch(where, "mps", node.name, argv.mps(sys.executable, folders, node.name, ports))
    _write_access(where, folders.config / "plugin", argv.plugin_token(node.name), ports)
    command = argv.plugin(sys.executable, folders, node, ports)
    control.launch(where, "plugin", node.name, command)


def wait_slices(where: layout.Layout, node: str) -> None:
    """Wait until the node's devices are published."""
    selector = f"--field-selector=spec.nodeName={node},spec.driver={DRIVER}"
    query = ("get", "resourceslices", selector, "--output=name")

    def published() -> bool:
        for component in state.NODE_DRIVER:
            _check_alive(where, component, node)
        return bool(kubectl.run(where, *query))

    log = control.log_path(where, "plugin", node)
    kubectl.wait(f"the devices of {node} are published", published, _SLICES_S, log)


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
    """A bound token and the kubeconfig that shows it, both for the owner only."""
    token = stem.with_suffix(".token")
    certificates.write_secret(token, kubectl.run(where, *request).strip().encode())
    document = certificates.token_kubeconfig(where, token, ports)
    certificates.write_secret(stem.with_suffix(".kubeconfig"), document)


def _check_alive(where: layout.Layout, component: str, node: str | None) -> None:
    if control.condition(where, component, node) == "dead":
        log = control.log_path(where, component, node)
        raise errors.ClusterError(
            f"{component} {node or ''} ended; the end of {log}:\n{control.tail(log)}"
        )
