"""Plays the driver's plugin on nodes that an autoscaler brings and takes away, one thread for all.

Each node of an instance type with GPUs publishes its pool as the plugin would, a while after it is
there, or never. The slices go with their Node, which owns them.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from driver import errors, names
from driver.kube import client, gvr
from driver.kubeletplugin.publish import slice_plan
from driver.resources.publish import slice_builder
from tests.fakes import simulated_pool

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
MACHINES: Mapping[str, str] = {"p5.48xlarge": "hgx-h100", "g6.xlarge": "l4"}
"""The simulated machine of each instance type that has GPUs."""
NEVER = float("inf")
_LOOK_S = 0.2


class Arrivals:
    """`delay_s` is how long the plugin of the node takes that is the n-th to come, from 0.

    NEVER, and no GPU of it shows up.
    """

    def __init__(self, kube: client.KubeClient, delay_s: Callable[[int], float]) -> None:
        self._kube = kube
        self._delay_s = delay_s
        self._due: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_S):
            with contextlib.suppress(errors.ApiError):  # the next look finds what is left to do
                self._look()

    def _look(self) -> None:
        now = time.monotonic()
        for node in self._kube.list(gvr.NODES).items:
            meta = node["metadata"]
            machine = MACHINES.get(meta.get("labels", {}).get(INSTANCE_TYPE, ""))
            if machine is None or meta.get("deletionTimestamp") or not _is_ready(node):
                continue
            delay_s = self._delay_s(len(self._due))
            if now >= self._due.setdefault(meta["uid"], now + delay_s):
                self._publish(meta["name"], meta["uid"], machine)
                self._due[meta["uid"]] = NEVER

    def _publish(self, name: str, uid: str, machine: str) -> None:
        pool = simulated_pool.of_machine(name, "controller", machine)
        mine = f"spec.driver={names.DRIVER},spec.nodeName={name}"
        items = self._kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items
        owner = slice_builder.Owner(simulated_pool.node_name(name), uid)
        for created in slice_plan.plan_writes(pool, owner, items).creates:
            self._kube.create(gvr.RESOURCE_SLICES, created)


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


@contextlib.contextmanager
def arriving(kube: client.KubeClient, *delays_s: float) -> Iterator[Arrivals]:
    """Meanwhile nodes that come publish their GPUs; all after the last as the last."""
    plugins = Arrivals(kube, lambda index: delays_s[min(index, len(delays_s) - 1)])
    plugins.start()
    try:
        yield plugins
    finally:
        plugins.stop()
