"""kwok: it plays the kubelets of Node objects without a machine, for tests that need such nodes.

Nodes with its annotation become Ready and stay so, pods bound to them run and end; nodes with a
real kubelet are left alone. What it does to them are the stages that its module calls fast, but
that the pods of a Job take a while; its account and rights are its module's own too.
"""

from collections.abc import Sequence
from pathlib import Path

import yaml

from hack.cluster import control, guests, host, layout, plan, store

COMPONENT = "kwok"
ANNOTATION = "kwok.x-k8s.io/node=fake"
_ACCOUNT = ("kube-system", "kwok-controller")
# A part of the pods' network that no node here has: they have /24 ranges from its start.
_POD_RANGE = "198.18.255.1/24"
_JOB_ENDS = "pod-complete"
_JOB_TAKES_MS = 15_000


def fetch() -> guests.Parts:
    """Kwok, built the first time (about a minute). CommandFailedError where it cannot be."""
    return guests.fetch(COMPONENT)


def start(where: layout.Layout) -> None:
    """Build kwok if it is not there, start it, and wait until it answers. Raises ClusterError."""
    cluster = store.running(where)
    parts = fetch()
    ports = plan.choose_ports((COMPONENT,), tuple(cluster.ports.values()), host.is_free)
    own = parts.source / "kustomize"
    guests.apply(where, installed(_objects(own / "rbac")))
    configuration = guests.folder(where, COMPONENT) / "stages.yaml"
    configuration.write_text(yaml.safe_dump_all(stages(_objects(own / "stage" / "pod" / "fast"))))
    address = f"127.0.0.1:{ports[COMPONENT]}"
    command = (
        str(parts.program),
        f"--config={configuration}",
        f"--kubeconfig={guests.access(where, COMPONENT, _ACCOUNT, cluster.ports)}",
        f"--manage-nodes-with-annotation-selector={ANNOTATION}",
        "--node-lease-duration-seconds=40",
        f"--cidr={_POD_RANGE}",
        f"--node-ip={plan.API_ADDRESS}",
        f"--server-address={address}",
    )
    control.launch(where, COMPONENT, None, command)
    guests.wait_ready(where, COMPONENT, f"http://{address}/healthz")


def stages(objects: Sequence[guests.Object]) -> list[guests.Object]:
    """What becomes of pods; those of a Job run a while, that they can be seen to run together."""
    found: list[guests.Object] = []
    for one in guests.without(objects, "Kustomization"):
        more = {"delay": {"durationMilliseconds": _JOB_TAKES_MS}} if _ends_jobs(one) else {}
        found.append({**one, "spec": {**one["spec"], **more}})
    return found


def _ends_jobs(one: guests.Object) -> bool:
    return bool(one["metadata"]["name"] == _JOB_ENDS)


def _objects(folder: Path) -> list[guests.Object]:
    files = sorted(folder.glob("*.yaml"))
    return [one for file in files for one in guests.read(file.read_text())]


def installed(objects: Sequence[guests.Object]) -> list[guests.Object]:
    """Its account and its rights, without what only tells kustomize of them."""
    return guests.without(objects, "Kustomization")
