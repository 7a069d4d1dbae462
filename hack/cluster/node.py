"""One node: its folders, its containerd with both images, its kubelet; and its end."""

import contextlib
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster import (
    argv,
    certificates,
    cgroups,
    configs,
    control,
    errors,
    host,
    images,
    kubectl,
    layout,
    mounts,
    namespaces,
    plan,
    processes,
    shell,
    state,
    store,
)
from hack.image import build

READY_S = 90.0
_GONE_S = 10.0


def prepare(where: layout.Layout, node: state.NodeState, ports: Mapping[str, int]) -> None:
    """Lay out a node: folders, configuration, certificates, its address, its link."""
    folders = where.node(node.name)
    for folder in folders.folders():
        folder.mkdir(parents=True, exist_ok=True)
    folders.config.chmod(0o700)
    where.shims.mkdir(exist_ok=True)
    where.nodes.mkdir(exist_ok=True)
    (where.nodes / node.name).unlink(missing_ok=True)
    (where.nodes / node.name).symlink_to(folders.root)
    host.add_address(plan.node_address(node.index))
    cgroups.prepare_pods(where.tag, node.name)
    certificates.create_node(where, node.name, plan.node_address(node.index), ports)
    _write_configs(where, node, ports)


def _write_configs(where: layout.Layout, node: state.NodeState, ports: Mapping[str, int]) -> None:
    folders = where.node(node.name)
    group = cgroups.pods_group(where.tag, node.name)
    kubelet = configs.kubelet(
        node, folders, where.key("ca.pem"), ports[f"kubelet.{node.name}"], group
    )
    (folders.config / "kubelet.yaml").write_text(configs.yaml(kubelet))
    runc = Path(shutil.which("runc") or "/usr/sbin/runc")
    containerd = configs.containerd(folders, where.shims, runc, where.programs, "overlayfs")
    (folders.config / "containerd.toml").write_text(containerd)
    name = host.network_name(where.tag, node.name)
    data = folders.run / "addresses"
    network = configs.network(name, plan.pod_range(node.index), data)
    (folders.network / "10-ration.conflist").write_text(configs.yaml(network))


def start_runtime(where: layout.Layout, node: state.NodeState, driver: state.Driver) -> None:
    """Start containerd and load the images."""
    folders = where.node(node.name)
    archives = images.ensure()
    if driver is state.Driver.PODS:
        # The driver's pods find the node's folders where every real node has them.
        start_machine(where, node)
        namespaces.make(folders)
        archives = (*archives, build.ensure(configs.DRIVER_IMAGE))
    command = argv.containerd(where.program("containerd"), folders)
    _launch(where, node.name, "containerd", command)
    wait_runtime(where, node.name)
    load_images(where, node.name, archives)


def load_images(where: layout.Layout, node: str, archives: Sequence[Path]) -> None:
    """Load image archives into a node that runs."""
    socket = where.node(node).socket
    for command in configs.ctr_import(where.program("ctr"), socket, archives):
        shell.run(command, timeout=120)


def start_machine(where: layout.Layout, node: state.NodeState) -> None:
    """Make the node's simulated machine, and start its process."""
    folders = where.node(node.name)
    shell.run(argv.gpu_create(sys.executable, folders, node), cwd=where.checkout, timeout=120)
    control.launch(where, "gpu", node.name, argv.gpu(sys.executable, folders))


def _launch(where: layout.Layout, node: str, component: str, command: argv.Argv) -> None:
    """Start it where the node lives: in the node's namespace, if it has one."""
    folders = where.node(node)
    if namespaces.exists(folders):
        command = namespaces.inside(folders, command)
    control.launch(where, component, node, command)


def wait_runtime(where: layout.Layout, node: str) -> None:
    """Wait until containerd answers: a kubelet that finds none ends."""
    log = control.log_path(where, "containerd", node)
    ask = (str(where.program("ctr")), "--address", str(where.node(node).socket), "version")
    kubectl.wait(f"containerd of {node} answers", lambda: bool(shell.run(ask)), 30, log)


def start_kubelet(
    where: layout.Layout, node: state.NodeState, feature_gates: Mapping[str, bool]
) -> None:
    """Start the kubelet; it registers the node."""
    folders = where.node(node.name)
    # A plugin's pod puts its UID into sockets' names: only the usual path is short enough.
    root = layout.KUBELET if namespaces.exists(folders) else folders.kubelet
    command = argv.kubelet(where.program("kubelet"), folders, node, root)
    _launch(where, node.name, "kubelet", (*command, *argv.feature_gates(feature_gates)))


def wait_ready(where: layout.Layout, node: str) -> None:
    """Wait until the node is Ready."""
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    query = ("get", "node", node, "--output", f"jsonpath={path}")
    kubectl.wait(
        f"node {node} is Ready",
        lambda: kubectl.run(where, *query) == "True",
        READY_S,
        control.log_path(where, "kubelet", node),
    )


def remove(where: layout.Layout, node: state.NodeState, absent: tuple[str, ...]) -> None:
    """End a node as if its machine were taken away, and forget it."""
    components = (*foreign(where, node.name), *state.NODE_DRIVER, *state.NODE_CORE)
    for component in components:
        with contextlib.suppress(errors.ClusterError):
            control.kill(where, component, node.name)
    _move_proxy(where, node.name)
    forget = ("delete", "node", node.name, "--ignore-not-found", "--wait=false")
    kubectl.run(where, *forget)
    pods = ("delete", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={node.name}")
    kubectl.run(where, *pods, "--force", "--grace-period=0", "--wait=false")
    groups = (f"pods/{node.name}", *(
        f"components/{processes.key(component, node.name)}" for component in components
    ))  # fmt: skip
    for group in groups:
        end_group(where, group)
    clear_folder(where.node(node.name).root)
    host.remove_addresses((plan.node_address(node.index),))
    host.remove_foreign_files(where, absent, node.name)
    (where.nodes / node.name).unlink(missing_ok=True)
    for component in components:
        control.forget(where, component, node.name)


def foreign(where: layout.Layout, node: str) -> tuple[str, ...]:
    """The components of a node that are neither its own nor this driver's: other drivers'."""
    own = {*state.NODE_DRIVER, *state.NODE_CORE}
    return tuple(
        component
        for component, location in control.recorded(where)
        if location == node and component not in own
    )


def start_proxy(where: layout.Layout, node: str) -> None:
    """Start the machine's kube-proxy, on a node that exists."""
    command = argv.kube_proxy(where.program("kube-proxy"), where, node)
    control.launch(where, "kube-proxy", None, command)


def _move_proxy(where: layout.Layout, leaving: str) -> None:
    """kube-proxy ends with its node; it goes to one that stays."""
    spec = control.read(where, "kube-proxy", None).spec
    cluster = store.read(where)
    if cluster is None or argv.proxy_node(spec.argv) != leaving:
        return
    staying = next((entry.name for entry in cluster.nodes if entry.name != leaving), None)
    if staying is not None:
        control.kill(where, "kube-proxy", None)
        start_proxy(where, staying)


def end_group(where: layout.Layout, below: str = "") -> None:
    """Kill every process in the cluster's groups, and remove the groups."""
    while members := cgroups.members(where.tag, below):
        for pid in members:
            process = processes.identify(pid)
            if process is not None and pid in cgroups.members(where.tag, below):
                processes.send(process, signal.SIGKILL)
        left = processes.wait_until_gone(members, _GONE_S)
        if left:
            raise errors.NotInTimeError(f"processes {sorted(left)} end", _GONE_S)
    kubectl.wait("the control groups go", lambda: not cgroups.remove(where.tag, below), _GONE_S)


def clear_folder(folder: Path) -> None:
    """Unmount everything below a folder, then delete it; a mount that stays is an error."""
    left = mounts.undo(folder)
    if left:
        raise errors.ClusterError(f"still mounted: {', '.join(map(str, left))}")
    if folder.exists():
        shutil.rmtree(folder)
