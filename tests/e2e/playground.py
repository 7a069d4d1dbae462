"""Actions of end-to-end tests on a cluster: a namespace, pods and claims in it, and waiting."""

import contextlib
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from driver import errors
from driver.kube import client, gvr
from hack.cluster import api

T = TypeVar("T")
Raw = dict[str, Any]
LANE = {"ration.dev/lane": "e2e"}
TAINT = "ration.dev/lane=e2e:NoSchedule"
TOLERATION = {"key": "ration.dev/lane", "operator": "Exists"}
LIST_GPUS = "nvidia-smi -L && exec sleep 3600"
_numbers = itertools.count(1)


def add_node(cluster: api.Cluster, name: str, allocator: str = "controller", **more: Any) -> None:
    """A node that only this lane's pods land on."""
    cluster.add_node(name, allocator=allocator, labels=LANE, taints=(TAINT,), **more)


@contextlib.contextmanager
def labelled(cluster: api.Cluster, names: Sequence[str]) -> Iterator[None]:
    """Meanwhile this lane's pods land on these nodes, and others do too."""
    pairs = [f"{key}={value}" for key, value in LANE.items()]
    cluster.kubectl("label", "nodes", *names, *pairs, "--overwrite")
    try:
        yield
    finally:
        cluster.kubectl("label", "nodes", *names, *(f"{key}-" for key in LANE))


def until(condition: Callable[[], T], within_s: float, description: str) -> T:
    """The first true answer; an error that says what never came."""
    deadline = time.monotonic() + within_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(
                f"{description}: not within {within_s:.0f} s; last seen: {result!r}"
            )
        time.sleep(0.1)


def on(node: str) -> dict[str, str]:
    """The nodeSelector of one node."""
    return {"kubernetes.io/hostname": node}


def a_template(name: str, count: int = 1, **exactly: Any) -> Raw:
    """A ResourceClaimTemplate for whole GPUs."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": a_claim(name, count, **exactly)["spec"]},
    }


def a_claim(name: str, count: int = 1, **exactly: Any) -> Raw:
    """A ResourceClaim for whole GPUs."""
    request = {"deviceClassName": "gpu.ration.dev", "count": count, **exactly}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}},
    }


def a_pod(name: str, *, claims: tuple[str, ...] = (), template: str = "", **spec: Any) -> Raw:
    """A pod that lists the GPUs it sees and then sleeps."""
    entries = [{"name": f"c{i}", "resourceClaimName": claim} for i, claim in enumerate(claims)]
    if template:
        entries.append({"name": "made", "resourceClaimTemplateName": template})
    container = {
        "name": "main",
        "image": "ration.local/workload:latest",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", spec.pop("command", LIST_GPUS)],
        "resources": {
            "requests": {"cpu": spec.pop("cpu", "10m")},
            "claims": [{"name": entry["name"]} for entry in entries],
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "resourceClaims": entries,
            "nodeSelector": LANE,
            "tolerations": [TOLERATION],
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }


_KINDS = {
    "Pod": gvr.PODS,
    "ResourceClaim": gvr.RESOURCE_CLAIMS,
    "ResourceClaimTemplate": gvr.RESOURCE_CLAIM_TEMPLATES,
}


class Playground:
    """One namespace."""

    def __init__(self, cluster: api.Cluster, kube: client.KubeClient, namespace: str) -> None:
        self.cluster = cluster
        self.kube = kube
        self.namespace = namespace

    @classmethod
    def open(cls, cluster: api.Cluster, kube: client.KubeClient, **labels: str) -> Self:
        """Make the namespace and wait for its service account, without which no pod is made."""
        name = f"e2e-{os.getpid()}-{next(_numbers)}"
        kube.create(gvr.NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        accounts = gvr.Resource("", "v1", "serviceaccounts", namespaced=True)
        ground = cls(cluster, kube, name)
        until(lambda: _found(kube, accounts, "default", name), 20, "the service account")
        return ground

    def close(self) -> None:
        """Delete everything; its devices are free when this returns, the rest goes by itself."""
        for item in self.kube.list(gvr.PODS, namespace=self.namespace).items:
            self.kube.delete(gvr.PODS, item["metadata"]["name"], self.namespace)
        try:
            until(self._left, 60, f"the pods and devices of {self.namespace} are gone")
        except AssertionError as error:
            error.add_note(
                self.cluster.kubectl(
                    "get", "pods,resourceclaims", "-o", "yaml", "-n", self.namespace
                )
            )
            raise
        self.kube.delete(gvr.NAMESPACES, self.namespace)

    def _left(self) -> bool:
        pods = self.kube.list(gvr.PODS, namespace=self.namespace).items
        held = [claim for claim in self.claims() if claim.get("status", {}).get("allocation")]
        return not pods and not held

    def create(self, *objects: Raw) -> None:
        """Create objects in order."""
        for obj in objects:
            self.kube.create(_KINDS[obj["kind"]], obj, self.namespace)

    def delete_pod(self, name: str) -> None:
        """Delete a pod and wait until it is gone."""
        self.kube.delete(gvr.PODS, name, self.namespace)
        until(lambda: self.find(name) is None, 60, f"pod {name} is gone")

    def delete_by_force(self, name: str) -> None:
        """Delete a pod that no kubelet ends; it is gone when this returns."""
        force = ("--force", "--grace-period=0")
        self.cluster.kubectl("delete", "pod", name, f"--namespace={self.namespace}", *force)

    def find(self, name: str) -> Raw | None:
        """A pod, if it is there."""
        return _found(self.kube, gvr.PODS, name, self.namespace)

    def pod(self, name: str) -> Raw:
        """A pod that must be there."""
        return self.kube.get(gvr.PODS, name, self.namespace)

    def claim(self, name: str) -> Raw:
        """A claim that must be there."""
        return self.kube.get(gvr.RESOURCE_CLAIMS, name, self.namespace)

    def claims(self) -> list[Raw]:
        """All claims of the namespace."""
        return self.kube.list(gvr.RESOURCE_CLAIMS, namespace=self.namespace).items

    def running(self, name: str, within_s: float = 60) -> Raw:
        """Wait for a pod to run; its events in the error if it does not."""

        def phase() -> bool:
            return bool(self.pod(name)["status"].get("phase") == "Running")

        try:
            until(phase, within_s, f"pod {name} runs")
        except AssertionError as error:
            joined = "\n".join(self.events(name))
            raise AssertionError(f"{error}\n{joined}") from error
        return self.pod(name)

    def uuids(self, name: str) -> list[str]:
        """The GPUs that nvidia-smi listed inside the container."""

        def listed() -> list[str]:
            text = self.cluster.kubectl("logs", "-n", self.namespace, name)
            return re.findall(r"UUID: (GPU-[0-9a-f-]+)", text)

        return until(listed, 20, f"pod {name} lists its GPUs")

    def events(self, name: str, reason: str = "") -> list[str]:
        """Notes of the events about an object of that name."""
        items = self.kube.list(gvr.EVENTS, namespace=self.namespace).items
        return [
            f"{item['reason']}: {item.get('note', '')}"
            for item in items
            if item["regarding"]["name"] == name and reason in {"", item["reason"]}
        ]

    def reasons(self) -> set[str]:
        """Return the reasons of all events of the namespace."""
        items = self.kube.list(gvr.EVENTS, namespace=self.namespace).items
        return {item["reason"] for item in items}

    def events_of(self, reason: str) -> list[str]:
        """Return the notes of all events of the namespace with a reason."""
        items = self.kube.list(gvr.EVENTS, namespace=self.namespace).items
        return [str(item.get("note", "")) for item in items if item["reason"] == reason]

    def told(self, name: str, reason: str, within_s: float = 20) -> list[str]:
        """Wait for an event of that reason about an object."""
        return until(lambda: self.events(name, reason), within_s, f"{reason} about {name}")

    def conditions(self, claim: str) -> dict[str, tuple[str, str, str]]:
        """Return what is said of a claim's first device, by type: status, reason, message."""
        devices = self.claim(claim).get("status", {}).get("devices") or [{}]
        return {
            entry["type"]: (entry["status"], entry["reason"], entry["message"])
            for entry in devices[0].get("conditions") or ()
        }

    def says(
        self, claim: str, kind: str, status: str, within_s: float = 40
    ) -> tuple[str, str, str]:
        """Wait until a condition has that status; all of it."""

        def found() -> tuple[str, str, str] | None:
            values = self.conditions(claim).get(kind)
            return values if values and values[0] == status else None

        answer = until(found, within_s, f"{kind} of {claim} is {status}")
        assert answer is not None
        return answer

    def device_of(self, claim: str) -> tuple[str, str] | None:
        """Pool and device of a claim's first result."""
        allocation = self.claim(claim).get("status", {}).get("allocation")
        if not allocation:
            return None
        first = allocation["devices"]["results"][0]
        return first["pool"], first["device"]


def _found(
    kube: client.KubeClient, kind: gvr.Resource, name: str, namespace: str | None = None
) -> Raw | None:
    try:
        return kube.get(kind, name, namespace)
    except errors.NotFound:
        return None
