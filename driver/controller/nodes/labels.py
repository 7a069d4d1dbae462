"""Writes the node labels of `label_values` by server-side apply.

Labels that are no longer wanted are removed. Where another manager (GPU feature discovery) set a
label to another value, the node is left alone.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from driver import clock, errors, ids
from driver.controller.nodes import label_values
from driver.kube import client, gvr
from driver.resources.core import nodes
from driver.resources.dra import slices

INTERVAL_S = 10.0
MANAGER = "ration-node-labels"
_log = structlog.get_logger(__name__)


class NodeLabeler:
    """Labels every node with published GPUs. `published` returns all slices."""

    def __init__(
        self,
        kube: client.KubeClient,
        nodes_now: Callable[[], Mapping[ids.Key, nodes.Node]],
        published: Callable[[], Mapping[ids.Key, slices.Slice]],
        driver: str,
        time: clock.Clock,
    ) -> None:
        self._kube = kube
        self._nodes = nodes_now
        self._slices = published
        self._driver = driver
        self._clock = time
        self._read: dict[ids.NodeName, _NodeLabels] = {}
        self._applied: dict[str, Mapping[str, str]] = {}
        self._conflicts: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {}

    def run(self, stop: threading.Event) -> None:
        """Reconcile every ten seconds until `stop` is set."""
        while not self._clock.wait(stop, INTERVAL_S):
            self.reconcile(stop)

    def reconcile(self, stop: threading.Event) -> None:
        """Apply labels where GPUs or labels changed, until `stop` is set."""
        live = self._nodes().values()
        self._read = self._read_slices()
        uids = {node.uid for node in live}
        self._applied = {uid: applied for uid, applied in self._applied.items() if uid in uids}
        self._conflicts = {uid: met for uid, met in self._conflicts.items() if uid in uids}
        for node in live:
            if stop.is_set():
                return
            read = self._read.get(node.name)
            self._label(node, read.labels if read else {})

    def _read_slices(self) -> dict[ids.NodeName, "_NodeLabels"]:
        """Return each node's slices and labels; unchanged ones are reused."""
        grouped: dict[ids.NodeName, list[slices.Slice]] = {}
        for resource_slice in self._slices().values():
            if resource_slice.driver == self._driver and resource_slice.node is not None:
                grouped.setdefault(resource_slice.node, []).append(resource_slice)
        now = {}
        for name, node_slices in grouped.items():
            node_labels = self._read.get(name)
            same = node_labels is not None and [*map(id, node_labels.slices)] == [
                *map(id, node_slices)
            ]
            now[name] = (
                node_labels
                if node_labels and same
                else _NodeLabels(node_slices, label_values.gpu_labels(node_slices))
            )
        return now

    def _label(self, node: nodes.Node, desired: Mapping[str, str]) -> None:
        stands = all(node.labels.get(key) == value for key, value in desired.items())
        previous = self._applied.get(node.uid)
        if (stands and previous == desired) or (previous is None and not desired):
            return
        met = desired, node.labels
        if self._conflicts.get(node.uid) == met:
            return
        meta = {"name": node.name, "uid": node.uid, "labels": dict(desired)}
        body = {"apiVersion": gvr.NODES.api_version, "kind": "Node", "metadata": meta}
        try:
            self._kube.patch(
                gvr.NODES,
                node.name,
                body,
                kind=client.PatchType.APPLY,
                field_manager=MANAGER,
            )
        except errors.Conflict as e:
            # Until they, or we, say something else.
            self._conflicts[node.uid] = met
            _log.info("node labelled by somebody else", node=node.name, error=str(e))
            return
        except errors.ApiError as e:
            _log.warning("node not labelled", node=node.name, error=str(e))
            return
        self._applied[node.uid] = desired


@dataclass(frozen=True, slots=True)
class _NodeLabels:
    """A node's slices and the labels computed from them."""

    slices: list[slices.Slice]
    labels: Mapping[str, str]
