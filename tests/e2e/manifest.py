"""A manifest of examples/, applied as it stands: its pods, what they were given, what they see."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.cluster import api, errors
from tests.e2e import playground

Raw = dict[str, Any]
READY = "ready"
"""What each container prints once it has looked around."""
_ALLOCATED = re.compile(r"Allocated (?P<devices>.+) on (?P<node>[a-z0-9.-]+): (?P<why>\S.+)")
_DEVICE = re.compile(r"(?P<name>gpu-[0-9a-z-]+)(?: \((?P<amounts>[^)]*)\))?")
_KINDS = {"-mps": "mps", "-ts": "time-slicing"}


@dataclass(frozen=True, slots=True)
class Given:
    """A device as the event names it; `amounts` of a share: {"memory": "16Gi", ...}."""

    name: str
    amounts: dict[str, str]

    @property
    def kind(self) -> str:
        """`whole`, `mig`, `mps` or `time-slicing`, by its name."""
        if "-mig-" in self.name:
            return "mig"
        return next((owner for end, owner in _KINDS.items() if self.name.endswith(end)), "whole")


@dataclass(frozen=True, slots=True)
class Told:
    """The event about a pod: what it was given, where, and why there."""

    node: str
    devices: tuple[Given, ...]
    why: str


def read(note: str) -> Told:
    """The event's words."""
    match = _ALLOCATED.fullmatch(note)
    assert match is not None, note
    inputs = []
    for item in _DEVICE.finditer(match["devices"]):
        amounts = [part.split(" ") for part in (item["amounts"] or "").split(", ") if part]
        inputs.append(Given(item["name"], dict(amounts)))
    return Told(match["node"], tuple(inputs), match["why"])


class Manifest:
    """One file; its objects are in the namespace that it makes itself."""

    def __init__(self, cluster: api.Cluster, file: Path) -> None:
        self.cluster = cluster
        self.file = file
        self.objects: list[Raw] = [entry for entry in yaml.safe_load_all(file.read_text()) if entry]
        namespaces = [obj for obj in self.objects if obj["kind"] == "Namespace"]
        self.namespace = str(namespaces[0]["metadata"]["name"])

    def apply(self) -> None:
        """Make its namespace, have the server and the webhook check the rest, apply it all."""
        self.cluster.kubectl("create", "namespace", self.namespace)
        self.cluster.kubectl("apply", "--dry-run=server", "--filename", str(self.file))
        self.cluster.kubectl("apply", "--filename", str(self.file))

    def delete(self) -> None:
        """Delete it; its devices are free when this returns."""
        self.cluster.kubectl("delete", "--filename", str(self.file), "--wait", "--timeout=90s")

    def settled(self, within_s: float = 90) -> dict[str, Raw]:
        """Wait until every pod has looked around, and every Job is complete; the pods by name."""
        try:
            playground.until(self._is_settled, within_s, f"the pods of {self.file.name} run")
        except AssertionError as error:
            query = ("get", "pods,jobs,resourceclaims,events", "-n", self.namespace)
            raise AssertionError(f"{error}\n{self.cluster.kubectl(*query)}") from error
        return self.pods()

    def pods(self) -> dict[str, Raw]:
        """Its pods now."""
        return {item["metadata"]["name"]: item for item in self._items("pods")}

    def claims(self) -> list[Raw]:
        """Its claims now."""
        return self._items("resourceclaims")

    def told(self, pod: str) -> Told:
        """Return what the event about a pod says."""
        field = f"--field-selector=reason=Allocated,regarding.kind=Pod,regarding.name={pod}"
        query = ("events.events.k8s.io", field)
        until = playground.until(lambda: self._items(*query), 10, f"an event about {pod}")
        return read(until[-1]["note"])

    def said(self, pod: str, container: str) -> str:
        """Return what a container printed."""
        return self.cluster.kubectl("logs", "-n", self.namespace, pod, "-c", container)

    def sees(self, pod: str, container: str) -> Any:
        """Return the devices and memory of a CUDA program that allocates all it can."""
        values = ("-n", self.namespace, pod, "-c", container)
        program = ("simclient", "--allocate", "max")
        return json.loads(self.cluster.kubectl("exec", *values, "--", *program).splitlines()[0])

    def _is_settled(self) -> bool:
        done = [item for item in self._items("jobs") if item["status"].get("succeeded")]
        succeeded = {entry["metadata"]["name"]: entry["status"]["succeeded"] for entry in done}
        if succeeded != self._wanted_jobs():
            return False
        pods = self.pods()
        phases = Counter(pod["status"].get("phase") for pod in pods.values())
        if phases["Running"] + phases["Succeeded"] != self._wanted_pods():
            return False
        return all(self._has_looked(pod) for pod in pods.values())

    def _has_looked(self, pod: Raw) -> bool:
        name = pod["metadata"]["name"]
        return all(READY in self._said_so_far(name, container) for container in containers(pod))

    def _said_so_far(self, pod: str, container: str) -> list[str]:
        try:
            return self.said(pod, container).splitlines()
        except errors.ClusterError:  # it has not started
            return []

    def _wanted_jobs(self) -> dict[str, int]:
        jobs = [obj for obj in self.objects if obj["kind"] == "Job"]
        return {job["metadata"]["name"]: job["spec"].get("completions", 1) for job in jobs}

    def _wanted_pods(self) -> int:
        servers = [obj for obj in self.objects if obj["kind"] in {"Deployment", "StatefulSet"}]
        alone = [obj for obj in self.objects if obj["kind"] == "Pod"]
        replicas: int = sum(server["spec"].get("replicas", 1) for server in servers)
        return replicas + len(alone) + sum(self._wanted_jobs().values())

    def _items(self, kind: str, *more: str) -> list[Raw]:
        query = ("get", kind, "-n", self.namespace, *more, "--output=json")
        items: list[Raw] = json.loads(self.cluster.kubectl(*query))["items"]
        return items


def containers(pod: Raw) -> list[str]:
    """The containers of a pod, sidecars first."""
    spec = pod["spec"]
    return [entry["name"] for entry in (*spec.get("initContainers", ()), *spec["containers"])]
