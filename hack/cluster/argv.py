"""The command line of every component. Pure: values in, argument tuples out."""

from collections.abc import Mapping
from pathlib import Path

from hack.cluster import configs, layout, plan, state

NAMESPACE = "ration-system"
Ports = Mapping[str, int]
Argv = tuple[str, ...]


def api_server(ports: Ports) -> str:
    """The API server's address."""
    return f"https://{plan.API_ADDRESS}:{ports['kube-apiserver']}"


def etcd(program: Path, where: layout.Layout, ports: Ports) -> Argv:
    """One member; nothing here must survive a power cut, so it does not wait for the disk."""
    client = f"https://127.0.0.1:{ports['etcd']}"
    peer = f"http://127.0.0.1:{ports['etcd-peer']}"
    return (
        str(program),
        "--name=ration",
        f"--data-dir={where.etcd}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=ration={peer}",
        f"--cert-file={where.key('etcd.pem')}",
        f"--key-file={where.key('etcd.key')}",
        "--client-cert-auth",
        f"--trusted-ca-file={where.key('etcd-ca.pem')}",
        "--unsafe-no-fsync",
        "--logger=zap",
        "--log-level=warn",
    )


def kube_apiserver(program: Path, where: layout.Layout, ports: Ports) -> Argv:
    """The API server, on an address of this machine that pods reach too."""
    return (
        str(program),
        f"--etcd-servers=https://127.0.0.1:{ports['etcd']}",
        f"--etcd-cafile={where.key('etcd-ca.pem')}",
        f"--etcd-certfile={where.key('etcd-client.pem')}",
        f"--etcd-keyfile={where.key('etcd-client.key')}",
        f"--bind-address={plan.API_ADDRESS}",
        f"--advertise-address={plan.API_ADDRESS}",
        f"--secure-port={ports['kube-apiserver']}",
        f"--tls-cert-file={where.key('kube-apiserver.pem')}",
        f"--tls-private-key-file={where.key('kube-apiserver.key')}",
        f"--client-ca-file={where.key('ca.pem')}",
        f"--kubelet-certificate-authority={where.key('ca.pem')}",
        f"--kubelet-client-certificate={where.key('kubelet-client.pem')}",
        f"--kubelet-client-key={where.key('kubelet-client.key')}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-cluster-ip-range={plan.SERVICE_NETWORK}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={where.key('service-account.pub')}",
        f"--service-account-signing-key-file={where.key('service-account.key')}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--runtime-config=api/all=true",
        f"--audit-policy-file={where.key('audit.yaml')}",
        f"--audit-log-path={where.audit}",
        "--audit-log-maxsize=16",  # megabytes
        "--audit-log-maxbackup=4",
        "--allow-privileged=true",
        "--anonymous-auth=false",
        "--profiling=false",
    )


def feature_gates(gates: Mapping[str, bool]) -> Argv:
    """The flag of Kubernetes' own components for gates that differ from their defaults."""
    pairs = (f"{name}={str(is_on).lower()}" for name, is_on in sorted(gates.items()))
    return (f"--feature-gates={','.join(pairs)}",) if gates else ()


def kube_controller_manager(program: Path, where: layout.Layout, ports: Ports) -> Argv:
    """The built-in controllers, each with its own service account."""
    return (
        *_local_server(program, where, ports, "kube-controller-manager"),
        f"--root-ca-file={where.key('ca.pem')}",
        f"--service-account-private-key-file={where.key('service-account.key')}",
        "--use-service-account-credentials=true",
        "--allocate-node-cidrs=false",
        f"--flex-volume-plugin-dir={where.home / 'volume-plugins'}",
    )


def kube_scheduler(program: Path, where: layout.Layout, ports: Ports) -> Argv:
    """The scheduler, as it comes."""
    return _local_server(program, where, ports, "kube-scheduler")


def _local_server(program: Path, where: layout.Layout, ports: Ports, name: str) -> Argv:
    """What controller-manager and scheduler have in common; a single one needs no election."""
    kubeconfig = where.key(f"{name}.kubeconfig")
    return (
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[name]}",
        "--leader-elect=false",
    )


def kube_proxy(program: Path, where: layout.Layout, node: str) -> Argv:
    """One for the machine: service addresses work from the host and from every pod.

    It wants to be on a node that exists: without one it waits for 30 s, and it ends with its node.
    """
    return (str(program), f"--config={where.key('kube-proxy.yaml')}", f"--hostname-override={node}")


def proxy_node(command: Argv) -> str:
    """The node that a kube-proxy was started on."""
    return command[-1].partition("=")[2]


def containerd(program: Path, folders: layout.NodeLayout) -> Argv:
    """The runtime of one node."""
    return (str(program), "--config", str(folders.config / "containerd.toml"))


def kubelet(program: Path, folders: layout.NodeLayout, node: state.NodeState, root: Path) -> Argv:
    """The kubelet of one node; `root` is its own folder as it sees it."""
    return (
        str(program),
        f"--config={folders.config / 'kubelet.yaml'}",
        f"--kubeconfig={folders.config / 'kubelet.kubeconfig'}",
        f"--root-dir={root}",
        f"--cert-dir={folders.config}",
        f"--hostname-override={node.name}",
        f"--node-ip={plan.node_address(node.index)}",
        f"--node-labels={configs.node_labels(node)}",
    )


def gpu_create(python: str, folders: layout.NodeLayout, node: state.NodeState) -> Argv:
    """Lay out the simulated machine; the node's name makes its serial numbers differ."""
    return (python, "-m", "simulator", "create", str(folders.gpu),
            "--machine", node.machine, "--seed", node.name)  # fmt: skip


def gpu(python: str, folders: layout.NodeLayout) -> Argv:
    """The simulated machine's own process."""
    return (python, "-m", "simulator", "run", str(folders.gpu))


def mps(python: str, folders: layout.NodeLayout, node: str, ports: Ports) -> Argv:
    """The driver's MPS supervisor of one node."""
    flags = {
        "--state-dir": folders.mps,
        "--shm-dir": folders.mps / "shm",
        "--driver-root": folders.gpu / "driver-root",
        "--host-root": folders.gpu / "host-root",
        "--metrics-address": f"127.0.0.1:{ports[f'mps.{node}']}",
    }
    words = (str(word) for pair in flags.items() for word in pair)
    return (python, "-m", "driver.mps", *words)


def plugin(python: str, folders: layout.NodeLayout, node: state.NodeState, ports: Ports) -> Argv:
    """The driver's kubelet plugin of one node."""
    flags = {
        "--kubeconfig": folders.config / "plugin.kubeconfig",
        "--node-name": node.name,
        "--kubelet-root": folders.kubelet,
        "--cdi-root": folders.cdi,
        "--state-dir": folders.state,
        "--mps-dir": folders.mps,
        "--driver-root": folders.gpu / "driver-root",
        "--host-root": folders.gpu / "host-root",
        "--allocator": node.allocator.value,
        "--metrics-address": f"127.0.0.1:{ports[f'plugin.{node.name}']}",
    }
    words = (str(word) for pair in flags.items() for word in pair)
    return (python, "-m", "driver.kubeletplugin", *words, *node.plugin_flags)


def controller(python: str, where: layout.Layout, name: str, ports: Ports) -> Argv:
    """One of the driver's controllers; `name` is its identity."""
    flags = {
        "--kubeconfig": where.key("controller.kubeconfig"),
        "--identity": name,
        "--namespace": NAMESPACE,
        "--metrics-address": f"127.0.0.1:{ports[name]}",
        "--web-address": f"127.0.0.1:{ports[f'{name}-page']}",
    }
    words = (str(word) for pair in flags.items() for word in pair)
    return (python, "-m", "driver.controller", *words)


def plugin_token(
    node: str, account: str = "ration-kubeletplugin", namespace: str = NAMESPACE
) -> Argv:
    """Kubectl's words for a token that carries the node's name and dies with the node."""
    return (
        *controller_token(account, namespace),
        "--bound-object-kind=Node",
        f"--bound-object-name={node}",
    )


def controller_token(account: str = "ration-controller", namespace: str = NAMESPACE) -> Argv:
    """Kubectl's words for a token of a service account."""
    return ("create", "token", account, f"--namespace={namespace}", "--duration=24h")
