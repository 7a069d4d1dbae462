"""Kueue in front of the driver, for tests of both: its real manager, as a process of this machine.

All objects come from the chart in Kueue's own module (v0.18.2, charts/kueue): the custom resources,
its rights, its webhooks and their Service. Only its pod is left out, and the APIService of
its queue visibility, which without that pod would be an API that never answers. An EndpointSlice
leads the Service to the process; Kueue makes the certificates itself, and they are put into its
folder as a kubelet puts a Secret's content into a volume.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rich.console
import urllib3
import yaml

from hack.cluster import (
    argv,
    certificates,
    chart,
    configs,
    control,
    errors,
    host,
    kubectl,
    layout,
    plan,
    progress,
    store,
    toolchain,
    versions,
)

COMPONENT = "kueue"
NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"  # noqa: S105 - an object's name
# What the process cannot stand for: its own pod, and an API that only that pod would serve.
LEFT_OUT = frozenset({"Deployment", "APIService"})
# The server of that API wants certificates in a folder of the image.
GATES = {"VisibilityOnDemand": False}
_START_S = 60.0
_CERTIFICATES = ("tls.crt", "tls.key", "ca.crt")
Object = Mapping[str, Any]


class Parts(NamedTuple):
    """What Kueue is made of: its program and the folder of its chart."""

    program: Path
    chart: Path


def fetch() -> Parts:
    """Kueue, built the first time (about three minutes). CommandFailedError where it cannot be."""
    console = rich.console.Console(stderr=True)
    steps = progress.Steps(console, toolchain.cache_root() / "timings.json")
    source = toolchain.source(versions.load().sets()[COMPONENT])
    return Parts(toolchain.program(COMPONENT, steps), source / "charts" / "kueue")


def start(where: layout.Layout, configuration: Object) -> None:
    """Build Kueue if it is not there, install it, start it, and wait until it answers.

    `configuration` are fields of config.kueue.x-k8s.io/v1beta2 Configuration (`integrations`,
    `resources`, `featureGates`). Raises ClusterError.
    """
    cluster = store.running(where)
    parts = fetch()
    listeners = (COMPONENT, "kueue-health")
    ports = plan.choose_ports(listeners, tuple(cluster.ports.values()), host.is_free)
    _apply(where, [*installed(_rendered(where, parts.chart)), endpoint(ports[COMPONENT])])
    folder = where.key(COMPONENT)
    folder.mkdir(mode=0o700, exist_ok=True)
    gates = {**configuration.get("featureGates", {}), **GATES}
    document = {**configuration, **_own(str(folder), ports), "featureGates": gates}
    (folder / "config.yaml").write_text(configs.yaml(document))
    _write_access(where, cluster.ports)
    command = (
        str(parts.program),
        f"--config={folder / 'config.yaml'}",
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--zap-log-level=2",
    )
    control.launch(where, COMPONENT, None, command)
    log = control.log_path(where, COMPONENT, None)
    kubectl.wait("Kueue made its certificates", lambda: _certified(where), _START_S, log)
    kubectl.wait("Kueue is ready", lambda: _ready(where, ports["kueue-health"]), _START_S, log)


def installed(objects: Sequence[Object]) -> list[Object]:
    """What of the chart's objects a process needs, with the namespace they lie in."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [namespace, *(one for one in objects if one["kind"] not in LEFT_OUT)]


def endpoint(port: int) -> Object:
    """Where the webhooks' Service leads: the address of this machine that the API server has."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{SERVICE}-process",
            "namespace": NAMESPACE,
            "labels": {
                "kubernetes.io/service-name": SERVICE,
                "endpointslice.kubernetes.io/managed-by": "ration-cluster",
            },
        },
        "addressType": "IPv4",
        "ports": [{"name": "", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [plan.API_ADDRESS], "conditions": {"ready": True}}],
    }


def _own(folder: str, ports: argv.Ports) -> Object:
    """Where it listens and finds its certificates; one process needs no election."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports['kueue-health']}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": plan.API_ADDRESS, "port": ports[COMPONENT], "certDir": folder},
        "leaderElection": {"leaderElect": False},
    }


def _rendered(where: layout.Layout, folder: Path) -> list[Object]:
    words = ("template", "kueue", str(folder), f"--namespace={NAMESPACE}")
    # 25,000 lines: the parser in C needs half a second, the other one ten.
    return [one for one in yaml.load_all(chart.run(where, *words), yaml.CSafeLoader) if one]


def _apply(where: layout.Layout, objects: Sequence[Object]) -> None:
    flags = ("--server-side", "--field-manager=ration-cluster", "--filename=-")
    every = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl.run(where, "apply", *flags, standard_input=json.dumps(every))
    served = [
        f"crd/{one['metadata']['name']}"
        for one in objects
        if one["kind"] == "CustomResourceDefinition"
    ]
    kubectl.run(where, "wait", "--for=condition=Established", *served, f"--timeout={_START_S:.0f}s")


def _write_access(where: layout.Layout, ports: argv.Ports) -> None:
    """It asks with its own account, so the chart's rights are what it has."""
    words = ("kueue-controller-manager", f"--namespace={NAMESPACE}", "--duration=24h")
    token = where.key(COMPONENT) / "token"
    certificates.write_secret(token, kubectl.run(where, "create", "token", *words).strip().encode())
    document = certificates.token_kubeconfig(where, token, ports)
    certificates.write_secret(where.key(COMPONENT) / "kubeconfig", document)


def _certified(where: layout.Layout) -> bool:
    _check_alive(where)
    words = ("get", "secret", SECRET, f"--namespace={NAMESPACE}", "--output=json")
    data = json.loads(kubectl.run(where, *words)).get("data", {})
    if any(name not in data for name in _CERTIFICATES):
        return False
    for name in _CERTIFICATES:
        certificates.write_secret(where.key(COMPONENT) / name, base64.b64decode(data[name]))
    return True


def _ready(where: layout.Layout, port: int) -> bool:
    _check_alive(where)
    try:
        answer = urllib3.request("GET", f"http://127.0.0.1:{port}/readyz", retries=False, timeout=2)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == 200  # noqa: PLR2004


def _check_alive(where: layout.Layout) -> None:
    if control.condition(where, COMPONENT, None) != "dead":
        return
    log = control.log_path(where, COMPONENT, None)
    raise errors.ClusterError(f"kueue ended; the end of {log}:\n{control.tail(log)}")
