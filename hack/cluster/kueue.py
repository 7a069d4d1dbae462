"""Kueue in front of the driver, for tests of both: its real manager, as a process of this machine.

All objects come from the chart in Kueue's own module (v0.18.2, charts/kueue): the custom resources,
its rights, its webhooks and their Service. Only its pod is left out, and the APIService of
its queue visibility, which without that pod would be an API that never answers. An EndpointSlice
leads the Service to the process; Kueue makes the certificates itself, and they are put into its
folder as a kubelet puts a Secret's content into a volume.
"""

import base64
import json
from collections.abc import Sequence

from hack.cluster import (
    argv,
    certificates,
    configs,
    control,
    guests,
    host,
    kubectl,
    layout,
    plan,
    store,
)

COMPONENT = "kueue"
NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"  # noqa: S105 - an object's name
# What the process cannot stand for: its own pod, and an API that only that pod would serve.
LEFT_OUT = ("Deployment", "APIService")
# The server of that API wants certificates in a folder of the image.
GATES = {"VisibilityOnDemand": False}
_ACCOUNT = (NAMESPACE, "kueue-controller-manager")
_CERTIFICATES = ("tls.crt", "tls.key", "ca.crt")


def fetch() -> guests.Parts:
    """Kueue, built the first time (about three minutes). CommandFailedError where it cannot be."""
    return guests.fetch(COMPONENT)


def start(where: layout.Layout, configuration: guests.Object) -> None:
    """Build Kueue if it is not there, install it, start it, and wait until it answers.

    `configuration` are fields of config.kueue.x-k8s.io/v1beta2 Configuration (`integrations`,
    `resources`, `featureGates`). Raises ClusterError.
    """
    cluster = store.running(where)
    parts = fetch()
    listeners = (COMPONENT, "kueue-health")
    ports = plan.choose_ports(listeners, tuple(cluster.ports.values()), host.is_free)
    chart = parts.source / "charts" / "kueue"
    made = guests.rendered(where, COMPONENT, chart, f"--namespace={NAMESPACE}")
    guests.apply(where, [*installed(made), endpoint(ports[COMPONENT])])
    folder = guests.folder(where, COMPONENT)
    gates = {**configuration.get("featureGates", {}), **GATES}
    document = {**configuration, **_own(str(folder), ports), "featureGates": gates}
    (folder / "config.yaml").write_text(configs.yaml(document))
    command = (
        str(parts.program),
        f"--config={folder / 'config.yaml'}",
        f"--kubeconfig={guests.access(where, COMPONENT, _ACCOUNT, cluster.ports)}",
        "--zap-log-level=2",
    )
    control.launch(where, COMPONENT, None, command)
    log = control.log_path(where, COMPONENT, None)
    kubectl.wait("Kueue made its certificates", lambda: _certified(where), guests.START_S, log)
    guests.wait_ready(where, COMPONENT, f"http://127.0.0.1:{ports['kueue-health']}/readyz")


def installed(objects: Sequence[guests.Object]) -> list[guests.Object]:
    """What of the chart's objects a process needs, with the namespace they lie in."""
    return [guests.a_namespace(NAMESPACE), *guests.without(objects, *LEFT_OUT)]


def endpoint(port: int) -> guests.Object:
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


def _own(folder: str, ports: argv.Ports) -> guests.Object:
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


def _certified(where: layout.Layout) -> bool:
    guests.check_alive(where, COMPONENT)
    words = ("get", "secret", SECRET, f"--namespace={NAMESPACE}", "--output=json")
    data = json.loads(kubectl.run(where, *words)).get("data", {})
    if any(name not in data for name in _CERTIFICATES):
        return False
    for name in _CERTIFICATES:
        certificates.write_secret(where.key(COMPONENT) / name, base64.b64decode(data[name]))
    return True
