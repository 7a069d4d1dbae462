"""Configuration files of the cluster's components. Pure: values in, text or documents out."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster import layout, plan, state

PAUSE_IMAGE = "ration.local/pause:latest"
WORKLOAD_IMAGE = "ration.local/workload:latest"
DRIVER_IMAGE = "ration.local/driver:latest"
Document = Mapping[str, object]


def kubeconfig(server: str, authority: bytes, user: Document) -> Document:
    """A kubeconfig with one cluster and one user; `user` is the API's `user` object."""
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(authority).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "ration", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "ration", "context": {"cluster": "ration", "user": "user"}}],
        "current-context": "ration",
    }


def certificate_user(certificate: bytes, key: bytes) -> Document:
    """A user that shows a client certificate."""
    return {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }


def kubelet(
    node: state.NodeState, folders: layout.NodeLayout, authority: Path, port: int, cgroup: str
) -> Document:
    """A KubeletConfiguration. Kubelets share the machine: each has a root for its pods' cgroups."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": plan.node_address(node.index),
        "port": port,
        "healthzPort": 0,
        "readOnlyPort": 0,
        "tlsCertFile": str(folders.config / "kubelet.pem"),
        "tlsPrivateKeyFile": str(folders.config / "kubelet.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{folders.socket}",
        "podLogsDir": str(folders.pod_logs),
        "volumePluginDir": str(folders.kubelet / "volume-plugins"),
        "clusterDNS": [plan.DNS_SERVICE],
        "clusterDomain": "cluster.local",
        # The kernel may mount cgroup v1; the pods' groups hang below one of the cluster's own.
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        # Lowering a score needs CAP_SYS_RESOURCE, which a guest may lack.
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        # The machine's disk and memory are its owner's business: nothing is evicted or collected.
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "registerWithTaints": [plan.parse_taint(taint) for taint in node.taints],
    }


def containerd(
    folders: layout.NodeLayout, shims: Path, runc: Path, plugins: Path, snapshotter: str
) -> str:
    """A containerd configuration, version 3 (TOML)."""
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    values: Mapping[str, Mapping[str, object]] = {
        "grpc": {"address": str(folders.socket)},
        runtime: {
            "cdi_spec_dirs": [str(folders.cdi)],
            "disable_apparmor": True,
            # Without CAP_SYS_RESOURCE runc could not lower a container's score and dies.
            "restrict_oom_score_adj": True,
            "netns_mounts_under_state_dir": True,
            "tolerate_missing_hugetlb_controller": True,
        },
        f"{runtime}.cni": {
            "bin_dirs": [str(plugins)],
            "conf_dir": str(folders.network),
            "use_internal_loopback": True,
        },
        f"{runtime}.containerd": {"default_runtime_name": "runc"},
        f"{runtime}.containerd.runtimes.runc": {
            "runtime_type": "io.containerd.runc.v2",
            "snapshotter": snapshotter,
        },
        f"{runtime}.containerd.runtimes.runc.options": {
            "BinaryName": str(runc),
            "Root": str(folders.run / "runc"),
            "SystemdCgroup": False,
        },
        "plugins.'io.containerd.cri.v1.images'": {"snapshotter": snapshotter},
        "plugins.'io.containerd.cri.v1.images'.pinned_images": {"sandbox": PAUSE_IMAGE},
        "plugins.'io.containerd.shim.v1.manager'": {"socket_dir": str(shims)},
    }
    top = {
        "version": 3,
        "root": str(folders.containerd),
        "state": str(folders.run / "containerd"),
        "disabled_plugins": ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"],
    }
    tables = [_table(top), *(f"\n[{name}]\n{_table(rows)}" for name, rows in values.items())]
    return "".join(tables)


def _table(rows: Mapping[str, object]) -> str:
    """TOML rows; JSON writes strings, numbers, booleans and flat lists as TOML reads them."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())


def network(name: str, pods: str, data: Path) -> Document:
    """A CNI configuration: one veth pair a pod, addresses from a file, no masquerade."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": str(data),
    }
    plugin = {"type": "ptp", "ipMasq": False, "ipam": addresses}
    return {"cniVersion": "1.0.0", "name": name, "plugins": [plugin]}


def kube_proxy(kubeconfig_file: Path, ports: Mapping[str, int]) -> Document:
    """A KubeProxyConfiguration: nftables, and no changes to the machine's connection tracking."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        # One proxy for all nodes knows only its own node's pods as local; without this a pod of
        # another node could not reach itself through its service.
        "nftables": {"masqueradeAll": True},
        "clusterCIDR": plan.POD_NETWORK,
        "clientConnection": {"kubeconfig": str(kubeconfig_file)},
        "bindAddress": "0.0.0.0",  # noqa: S104 - says which address family the node has; nothing listens here
        "metricsBindAddress": f"127.0.0.1:{ports['kube-proxy']}",
        "healthzBindAddress": f"127.0.0.1:{ports['kube-proxy-health']}",
        "oomScoreAdj": 0,
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def audit(namespace: str) -> Document:
    """An audit policy: who asked for what, of the service accounts of one namespace only."""
    ours = {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{namespace}"]}
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [ours, {"level": "None"}],
    }


def node_labels(node: state.NodeState) -> str:
    """The kubelet's --node-labels."""
    labels = {
        "ration.dev/machine": node.machine,
        "nvidia.com/gpu.present": "true",  # as Node Feature Discovery would have it
        **node.labels,
    }
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def yaml(document: Document) -> str:
    """JSON, which is YAML."""
    return json.dumps(document, indent=2) + "\n"


def ctr_import(ctr: Path, socket: Path, archives: Sequence[Path]) -> tuple[tuple[str, ...], ...]:
    """The commands that load image archives into a node."""
    return tuple((*_ctr_images(ctr, socket), "import", str(archive)) for archive in archives)


def ctr_tag(ctr: Path, socket: Path, image: str, name: str) -> tuple[str, ...]:
    """The command that gives an image of a node a second name."""
    return (*_ctr_images(ctr, socket), "tag", "--force", image, name)


def _ctr_images(ctr: Path, socket: Path) -> tuple[str, ...]:
    return (str(ctr), "--address", str(socket), "--namespace", "k8s.io", "images")
