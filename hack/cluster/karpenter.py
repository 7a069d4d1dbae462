"""Karpenter beside the driver, for tests of both: the real one, with the provider of fake nodes.

The custom resources and rights come from the chart in Karpenter's own module (v1.15.0,
kwok/charts), with its settings. Its provider writes Node objects where others start machines;
`start_kwok` runs what plays their kubelets.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster import argv, control, guests, host, layout, plan, store

COMPONENT = "karpenter"
NAMESPACE = "karpenter"
# What a process cannot stand for.
LEFT_OUT = ("Deployment", "PodDisruptionBudget")
# A pod waits this long for others before nodes are thought about; users have 1 s and 10 s.
_BATCH = {"BATCH_IDLE_DURATION": "500ms", "BATCH_MAX_DURATION": "2s"}
_LISTENERS = (COMPONENT, "karpenter-health")


def fetch() -> guests.Parts:
    """Karpenter, built the first time (about three minutes). CommandFailedError if it cannot be."""
    return guests.fetch(COMPONENT)


def start(where: layout.Layout, instance_types: Path, more: Mapping[str, str]) -> None:
    """Build Karpenter if it is not there, install it, start it, and wait until it answers.

    `instance_types` is the provider's file of what can be bought, `more` are further variables of
    its environment (`FEATURE_GATES`, `IGNORE_DRA_REQUESTS`). Raises ClusterError.
    """
    cluster = store.running(where)
    parts = fetch()
    ports = plan.choose_ports(_LISTENERS, tuple(cluster.ports.values()), host.is_free)
    kwok = parts.source / "kwok"
    flags = (f"--namespace={NAMESPACE}", "--include-crds")
    made = guests.rendered(where, COMPONENT, kwok / "charts", *flags)
    own = [one for file in _class_files(kwok) for one in guests.read(file.read_text())]
    guests.apply(where, installed(made, own))
    kubeconfig = guests.access(where, COMPONENT, (NAMESPACE, COMPONENT), cluster.ports)
    settings = {**environment(kubeconfig, instance_types, ports), **more}
    control.launch(where, COMPONENT, None, (str(parts.program),), settings)
    guests.wait_ready(where, COMPONENT, f"http://127.0.0.1:{ports['karpenter-health']}/readyz")


def installed(
    chart: Sequence[guests.Object], classes: Sequence[guests.Object]
) -> list[guests.Object]:
    """What of the chart's objects a process needs, with their namespace and the node class."""
    return [guests.a_namespace(NAMESPACE), *classes, *guests.without(chart, *LEFT_OUT)]


def environment(kubeconfig: Path, instance_types: Path, ports: argv.Ports) -> dict[str, str]:
    """Its settings, as its Deployment gives them; one process needs no election."""
    return {
        **_BATCH,
        "DISABLE_LEADER_ELECTION": "true",
        "HEALTH_PROBE_PORT": str(ports["karpenter-health"]),
        "INSTANCE_TYPES_FILE_PATH": str(instance_types),
        "KARPENTER_SERVICE": COMPONENT,
        "KUBECONFIG": str(kubeconfig),
        "KUBERNETES_MIN_VERSION": "1.19.0-0",
        "METRICS_PORT": str(ports[COMPONENT]),
        "SYSTEM_NAMESPACE": NAMESPACE,
    }


def _class_files(kwok: Path) -> list[Path]:
    """The chart lacks the provider's own resource."""
    return sorted((kwok / "apis" / "crds").glob("*.yaml"))
