"""One GPU of a node of kube-scheduler's, and pods that ask for a face of it."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from driver.kube import client, gvr
from hack.cluster import api
from simulator import store as machines
from tests.e2e import playground

CLASS = "e2e-share"
WHOLE = '$.type == "gpu"'
MPS = '$.type == "gpu-share" && $.sharing == "mps"'
A_PART = '$.type == "mig" && $.profile == "1g.10gb"'
TURNS = '$.type == "gpu-share" && $.sharing == "time-slicing"'
HOLD = "simclient --allocate max --hold forever"


@contextlib.contextmanager
def a_node(cluster: api.Cluster, kube: client.KubeClient, name: str, *flags: str) -> Iterator[None]:
    """A node that shares, for as long as the block runs, and a class for any face."""
    selector = {"cel": {"expression": 'device.driver == "gpu.ration.dev"'}}
    body = {"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}}
    try:
        kube.create(gvr.DEVICE_CLASSES, body)
        shared = ("--share-domain=cluster", *flags)
        playground.add_node(cluster, name, allocator="scheduler", plugin_flags=shared)
        yield
    finally:
        kube.delete(gvr.DEVICE_CLASSES, CLASS)
        if name in cluster.nodes():
            cluster.remove_node(name)


class OneGpu:
    """The GPU of that number, and the pods that were asked for."""

    def __init__(self, field: playground.Playground, node: str, number: int = 0) -> None:
        self.field = field
        self.node = node
        self.number = number
        self.base = field.cluster.node_dir(node) / "gpu"
        self.uuid = machines.load(self.base).gpus[number].uuid
        self.pods: list[str] = []

    def ask(
        self, name: str, terms: str, *, capacity: Any = None, config: Any = None, **pod: Any
    ) -> None:
        """A pod with a claim of its own; `$` in `terms` stands for the driver's attributes."""
        owner = "parentUUID" if "profile" in terms else "uuid"
        domain = 'device.attributes["gpu.ration.dev"]'
        words = f'{terms.replace("$", domain)} && {domain}.{owner} == "{self.uuid}"'
        exactly: dict[str, Any] = {"selectors": [{"cel": {"expression": words}}]}
        if capacity:
            exactly["capacity"] = {"requests": capacity}
        claim = playground.a_claim(name, deviceClassName=CLASS, **exactly)
        if config:
            parameters = {
                "apiVersion": "resource.ration.dev/v1alpha1",
                "kind": "GpuConfig",
                **config,
            }
            opaque = {"driver": "gpu.ration.dev", "parameters": parameters}
            claim["spec"]["devices"]["config"] = [{"opaque": opaque}]
        pod = {"command": HOLD, **pod}
        self.field.create(
            claim,
            playground.a_pod(name, claims=(name,), nodeSelector=playground.on(self.node), **pod),
        )
        self.pods.append(name)

    def sees(self, name: str) -> Any:
        """Return what the CUDA client in the container says that it has."""
        self.field.running(name)
        lines = playground.until(
            lambda: self.field.cluster.kubectl(
                "logs", "-n", self.field.namespace, name
            ).splitlines(),
            20,
            f"{name} says what it has",
        )
        return json.loads(lines[0])

    def free(self) -> None:
        """Delete the pods and their claims; they are gone when this returns."""
        for name in self.pods:
            self.field.delete_pod(name)
            self.field.kube.delete(gvr.RESOURCE_CLAIMS, name, self.field.namespace)

        def gone() -> bool:
            return not {obj["metadata"]["name"] for obj in self.field.claims()} & set(self.pods)

        playground.until(gone, 60, "the claims are gone")
        self.pods.clear()

    def board(self) -> Any:
        """The simulated hardware as it is now."""
        machine = machines.load(self.base)
        return machine.board(machine.gpus[self.number])
