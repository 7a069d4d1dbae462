"""State of a pod that must not change while the driver around it is replaced."""

import json
from pathlib import Path
from typing import Any

from driver.devices import mps_files
from driver.kube import gvr
from hack.cluster import api
from tests.e2e import playground

WORK = "exec simclient --allocate 1Gi --hold forever"
"""A CUDA program; losing its GPU or its MPS server it says so and ends."""


def slices(field: playground.Playground) -> dict[str, tuple[str, str]]:
    """UID and resourceVersion of every ResourceSlice: of one that is written the latter changes."""
    items = field.kube.list(gvr.RESOURCE_SLICES).items
    metadata = (item["metadata"] for item in items)
    return {meta["name"]: (meta["uid"], meta["resourceVersion"]) for meta in metadata}


def of(field: playground.Playground, name: str) -> dict[str, Any]:
    """Return the state of a pod that runs WORK with one claim of a template."""
    pod = field.running(name)
    (resource_claim_status,) = pod["status"]["resourceClaimStatuses"]
    ready = field.says(resource_claim_status["resourceClaimName"], "Ready", "True")
    claim = field.claim(resource_claim_status["resourceClaimName"])
    (container,) = pod["status"]["containerStatuses"]
    statement = told(field, name)
    node = field.cluster.node_dir(pod["spec"]["nodeName"])
    proc = field.cluster.proc(pod["spec"]["nodeName"])
    return {
        "claim": (claim["metadata"]["uid"], ready),
        "given": (claim["status"]["allocation"], claim["status"]["reservedFor"]),
        "container": (container["containerID"], container["restartCount"]),
        "said": statement,
        "program": process(proc, statement[0]["pid"]),
        "specs": files(node / "cdi", claim["metadata"]["uid"]),
        "record": files(node / "state/claims", claim["metadata"]["uid"]),
        "daemon": _daemon(node, proc, statement[0]),
    }


def told(field: playground.Playground, name: str) -> list[Any]:
    """The lines that the program has said: one, unless it lost what it had."""

    def lines() -> list[Any]:
        text = field.cluster.kubectl("logs", "-n", field.namespace, name)
        return [json.loads(line) for line in text.splitlines()]

    return playground.until(lines, 20, f"{name} says what it has")


def process(proc: Path, pid: int) -> tuple[str, int, str]:
    """Return what tells a process from a later one with its pid: name, pid, when it was started."""
    text = (proc / str(pid) / "stat").read_text()
    head, _, tail = text.rpartition(")")
    return head.partition("(")[2], pid, tail.split()[19]


def files(folder: Path, uid: str) -> dict[str, bytes]:
    """Return the files of a claim, by their names."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"*{uid}*"))}


def supervisors(cluster: api.Cluster, namespace: str) -> dict[str, tuple[str, str]]:
    """Node, and UID and image, of the pods that run MPS daemons."""
    label = "app.kubernetes.io/component=mps"
    text = cluster.kubectl("get", "pods", "-n", namespace, "-l", label, "--output=json")
    return {
        item["spec"]["nodeName"]: (item["metadata"]["uid"], item["spec"]["containers"][0]["image"])
        for item in json.loads(text)["items"]
    }


def _daemon(node: Path, proc: Path, statement: Any) -> Any:
    """The MPS daemon and the server that the program works with."""
    if statement["mps"] is None:
        return None
    status = mps_files.Layout(node / "state/mps").status(statement["devices"][0]["uuid"])
    daemon = mps_files.Status.parse(status.read_bytes(), status.name)
    assert daemon.state is mps_files.State.READY, daemon.problem
    assert daemon.pid is not None
    return process(proc, daemon.pid), process(proc, statement["mps"]["server"])
