"""Simulated nodes: API objects that a thread keeps alive, with the devices a plugin would publish.

No kubelet runs on them; `kubelets` plays theirs. What they publish is made by the plugin's own
code of a simulated machine, and written as its publisher writes it.
"""

import threading
import time
from concurrent import futures
from typing import Any

from driver import errors, names
from driver.devices import faces
from driver.kube import client, gvr
from driver.kubeletplugin.publish import slice_plan
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from tests.fakes import simulated_pool

LANE = {"ration.dev/lane": "churn"}
TAINT = {"key": "ration.dev/lane", "value": "churn", "effect": "NoSchedule"}
TOLERATION = {"key": "ration.dev/lane", "operator": "Exists"}
ZONE = "ration.dev/zone"
HANDOVER = slices.Taint(names.HANDOVER_TAINT, "", "NoSchedule")
_BEAT_S = 10.0


class Fleet:
    """`count` nodes named `sim-00` and on, in `zones` zones; `close` takes them away.

    The first `full` of them publish every face of their GPUs, the others all but MIG placements.
    """

    def __init__(self, kube: client.KubeClient, count: int, zones: int, full: int) -> None:
        self.kube = kube
        self.names = tuple(f"sim-{number:02d}" for number in range(count))
        self._full = frozenset(self.names[:full])
        self.zones = tuple(f"zone-{number}" for number in range(zones))
        self._uids: dict[str, str] = {}
        self._stop = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)

    def open(self, allocators: dict[str, str]) -> None:
        """Make the nodes and publish their devices, for the allocator of each."""
        for number, name in enumerate(self.names):
            self._make(name, self.zones[number % len(self.zones)], allocators[name])
        self._beating.start()
        with futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: self.publish(name, allocators[name]), self.names))

    def close(self) -> None:
        """Delete the nodes; their slices go with them, and here at once."""
        self._stop.set()
        self._beating.join(15)
        for name in self.names:
            for slice_ in self._slices(name):
                self._gone(gvr.RESOURCE_SLICES, slice_["metadata"]["name"])
            self._gone(gvr.NODES, name)
            self._gone(gvr.LEASES, name, "kube-node-lease")

    def publish(self, name: str, allocator: str, *, handover: bool = False) -> int:
        """Write the node's slices as its plugin would; how many writes that took."""
        kinds = (
            faces.DEFAULT_KINDS if name in self._full else faces.DEFAULT_KINDS - {faces.Kind.MIG}
        )
        taints = (HANDOVER,) if handover else ()
        pool = simulated_pool.of_machine(name, allocator, kinds=kinds, taints=taints)
        owner = slice_builder.Owner(simulated_pool.node_name(name), self._uids[name])
        writes = slice_plan.plan_writes(pool, owner, self._slices(name))
        for deleted in writes.deletes:
            self.kube.delete(gvr.RESOURCE_SLICES, deleted["metadata"]["name"])
        for deleted in writes.updates:
            self.kube.replace(gvr.RESOURCE_SLICES, deleted["metadata"]["name"], deleted)
        for deleted in writes.creates:
            self.kube.create(gvr.RESOURCE_SLICES, deleted)
        return len(writes)

    def flip(self, name: str, previous: str, after: str, handover_s: float) -> None:
        """Give the node to the other allocator, as D2 says: nobody's for a while, then its."""
        label = {"metadata": {"labels": {names.ALLOCATOR_LABEL: after}}}
        self.kube.patch(gvr.NODES, name, label)
        self.publish(name, previous, handover=True)
        if not self._stop.wait(handover_s):
            self.publish(name, after)

    def published(self) -> list[slices.Slice]:
        """All that the fleet shows now."""
        return [slices.parse(slice_) for name in self.names for slice_ in self._slices(name)]

    def _slices(self, name: str) -> list[gvr.Object]:
        mine = f"spec.driver={names.DRIVER},spec.nodeName={name}"
        return self.kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items

    def _make(self, name: str, zone: str, allocator: str) -> None:
        labels = {
            **LANE,
            ZONE: zone,
            "kubernetes.io/hostname": name,
            names.ALLOCATOR_LABEL: allocator,
        }
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [TAINT]}}
        self._uids[name] = self.kube.create(gvr.NODES, body)["metadata"]["uid"]
        room = {"cpu": "64", "memory": "512Gi", "pods": "250", "ephemeral-storage": "100Gi"}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "simulated",
            "lastHeartbeatTime": _stamp(),
            "lastTransitionTime": _stamp(),
        }
        status = {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}}
        self.kube.patch(gvr.NODES, name, status, subresource="status")
        lease = {"metadata": {"name": name}, "spec": _beat_of(name)}
        self.kube.create(gvr.LEASES, lease, "kube-node-lease")

    def _beat(self) -> None:
        while not self._stop.wait(_BEAT_S):
            for name in self.names:
                body = {"spec": _beat_of(name)}
                try:
                    self.kube.patch(gvr.LEASES, name, body, namespace="kube-node-lease")
                except errors.ApiError:
                    continue  # the next one comes in time

    def _gone(self, kind: gvr.Resource, name: str, namespace: str | None = None) -> None:
        try:
            self.kube.delete(kind, name, namespace)
        except errors.NotFound:
            return


def _beat_of(name: str) -> dict[str, Any]:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    return {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp}


def _stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
