"""The driver on a running cluster: manifests, simulated machines, plugins, controllers."""

import sys
import time
from pathlib import Path

from hack.cluster import (
    argv,
    certificates,
    control,
    errors,
    kubectl,
    layout,
    node,
    progress,
    state,
)

DRIVER = "gpu.ration.dev"
_SLICES_S = 60.0
_SETTLE_S = 0.5


def install(where: layout.Layout, cluster: state.ClusterState, steps: progress.Steps) -> None:
    """Install the driver as its manifests say, and start its processes."""
    with steps.step("Install the driver", 10):
        apply_manifests(where)
        _start_controllers(where, cluster)
        for entry in cluster.nodes:
            start_node(where, entry, cluster.ports)
    with steps.step("Wait for the devices", 5):
        for entry in cluster.nodes:
            wait_slices(where, entry.name)


def apply_manifests(where: layout.Layout) -> None:
    """Apply deploy/manifests in the order of their names."""
    folder = where.checkout / "deploy" / "manifests"
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise errors.ClusterError(
            "deploy/manifests holds no *.yaml, so there is no driver to install; "
            "bring the cluster up without it: --driver none"
        )
    flags = ("--server-side", "--force-conflicts", "--field-manager=ration-cluster")
    for file in files:
        kubectl.run(where, "apply", *flags, f"--filename={file}")


def start_node(where: layout.Layout, entry: state.NodeState, ports: argv.Ports) -> None:
    """Make the node's simulated machine; start its process, the MPS supervisor, the plugin."""
    node.start_machine(where, entry)
    folders, name = where.node(entry.name), entry.name
    control.launch(where, "mps", name, argv.mps(sys.executable, folders, name, ports))
    _write_access(where, folders.config / "plugin", argv.plugin_token(name), ports)
    control.launch(where, "plugin", name, argv.plugin(sys.executable, folders, entry, ports))


def wait_slices(where: layout.Layout, name: str) -> None:
    """Wait until the node's devices are published."""
    selector = f"--field-selector=spec.nodeName={name},spec.driver={DRIVER}"
    query = ("get", "resourceslices", selector, "--output=name")

    def published() -> bool:
        for component in state.NODE_DRIVER:
            _check_alive(where, component, name)
        return bool(kubectl.run(where, *query))

    log = control.log_path(where, "plugin", name)
    kubectl.wait(f"the devices of {name} are published", published, _SLICES_S, log)


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
