"""A controller that may ask for nodes, and the autoscaler and plugins that bring them."""

import dataclasses
import datetime as dt
from typing import Any

from driver import clock, names
from driver.api import node_shapes
from driver.controller.commit import write_pool
from tests.fakes import deciding
from tests.support.builders import objects, shapes


class Cluster(deciding.World):
    """Without a GPU at first; nodes come when a test says so."""

    def __init__(self, *results: dict[str, Any], **document: Any) -> None:
        written = {"shapes": [*results] or [shapes.document("h100-8", 8)], **document}
        read = node_shapes.read(written, "shapes.yaml")
        demanded = dataclasses.replace(deciding.on_demand_of(), document=read)
        super().__init__(0, demanded=demanded)
        self.namespace = demanded.namespace

    def asked(self) -> list[dict[str, Any]]:
        """The pods that ask for nodes."""
        return [pod for _, pod in sorted(self.server.pods.items())]

    def shapes_asked(self) -> list[str]:
        return [pod["metadata"]["labels"][names.PLACEHOLDER_LABEL] for pod in self.asked()]

    def wait_for(self, name: str, gpus: int = 1, queue: str = "", **spec: Any) -> None:
        """A pod that asks for GPUs, of a queue."""
        claim, request = f"{name}-gpu", objects.a_request(count=gpus)
        pod = objects.a_pod(name, claim, **spec)
        pod["metadata"]["labels"] = {names.QUEUE_LABEL: queue} if queue else {}
        self.add(objects.a_claim(claim, request), pod)

    def bind(self, node: str = "new-0", wish: str = "") -> str:
        """The autoscaler brings a node for one that asks, and kube-scheduler puts the pod there."""
        pod = next(
            entry
            for entry in self.asked()
            if "nodeName" not in entry["spec"]
            and wish in entry["metadata"]["annotations"][names.PLACEHOLDER_FOR]
        )
        self.put_node(node, dict(pod["spec"]["nodeSelector"]))
        self.server.change_pod(f"{self.namespace}/{pod['metadata']['name']}", node)
        return node

    def publish(self, node: str = "new-0", gpus: int = 8, **pool: Any) -> None:
        """Its plugin publishes GPUs."""
        self.stores.slices.apply(self._newer(objects.a_slice(node, gpus, **pool)))

    def told_of(self, reason: str, kind: str = "Pod") -> list[str]:
        return [text for on, why, text in self.told.lines if (on, why) == (kind, reason)]

    def has(self, name: str) -> bool:
        return self.device(f"{name}-gpu") is not None

    def settle(self, seconds: float = 1.0) -> None:
        """Settle for as long as the provisioner takes, too."""
        super().settle(seconds)
        super().settle(0.3)
        super().settle(1.2)

    def later(self, seconds: float) -> str:
        """A moment to come, RFC 3339."""
        return clock.rfc3339(self.clock.now() + dt.timedelta(seconds=seconds))

    def lose(self, node: str) -> None:
        """A node is gone, and what it published."""
        self.stores.nodes.apply(self._newer(self.server.nodes.pop(node)), deleted=True)
        self.stores.slices.apply(self._newer(objects.a_slice(node, 8)), deleted=True)

    def restart(self, *results: dict[str, Any]) -> None:
        """Another replica leads, with other shapes perhaps: what the first remembered is lost."""
        if results:
            read = node_shapes.read({"shapes": [*results]}, "shapes.yaml")
            demanded = dataclasses.replace(deciding.on_demand_of(), document=read)
            self._settings = dataclasses.replace(self._settings, on_demand=demanded)
        self.decider = self.make_decider()
        for kind, store in (("pod", self.stores.pods), ("claim", self.stores.claims)):
            for key in store.snapshot():
                self.items.add(write_pool.WorkItem(kind, key))
