"""Keeps the nodes' labels of `node_labels`, beside whoever else labels them.

Server-side apply knows whose a label is: what we no longer say goes, and a label that somebody else
has set to another value (GPU feature discovery) is theirs, and the node is left alone.
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
    """Labels every node whose GPUs are published. `published` gives all slices there are."""

    def __init__(
        self,
        kube: client.KubeClient,
        known: Callable[[], Mapping[ids.Key, nodes.Node]],
        published: Callable[[], Mapping[ids.Key, slices.Slice]],
        driver: str,
        time: clock.Clock,
    ) -> None:
        self._kube = kube
        self._nodes = known
        self._slices = published
        self._driver = driver
        self._clock = time
        self._read: dict[ids.NodeName, _Read] = {}
        self._said: dict[str, Mapping[str, str]] = {}
        self._theirs: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {}

    def run(self, stop: threading.Event) -> None:
        """Look every ten seconds until `stop` is set."""
        while not self._clock.wait(stop, INTERVAL_S):
            self.reconcile()

    def reconcile(self) -> None:
        """Label what changed: the GPUs, or the labels."""
        found = self._nodes().values()
        self._read = self._now()
        there = {node.uid for node in found}
        self._said = {uid: said for uid, said in self._said.items() if uid in there}
        self._theirs = {uid: met for uid, met in self._theirs.items() if uid in there}
        for node in found:
            read = self._read.get(node.name)
            self._label(node, read.labels if read else {})

    def _now(self) -> dict[ids.NodeName, "_Read"]:
        """What each node's slices say; those that are as before are not read again."""
        grouped: dict[ids.NodeName, list[slices.Slice]] = {}
        for one in self._slices().values():
            if one.driver == self._driver and one.node is not None:
                grouped.setdefault(one.node, []).append(one)
        now = {}
        for name, found in grouped.items():
            before = self._read.get(name)
            same = before is not None and [*map(id, before.slices)] == [*map(id, found)]
            now[name] = before if before and same else _Read(found, label_values.gpu_labels(found))
        return now

    def _label(self, node: nodes.Node, wanted: Mapping[str, str]) -> None:
        stands = all(node.labels.get(key) == value for key, value in wanted.items())
        before = self._said.get(node.uid)
        if (stands and before == wanted) or (before is None and not wanted):
            return
        met = wanted, node.labels
        if self._theirs.get(node.uid) == met:
            return
        meta = {"name": node.name, "uid": node.uid, "labels": dict(wanted)}
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
            self._theirs[node.uid] = met
            _log.info("node labelled by somebody else", node=node.name, error=str(e))
            return
        except errors.ApiError as e:
            _log.warning("node not labelled", node=node.name, error=str(e))
            return
        self._said[node.uid] = wanted


@dataclass(frozen=True, slots=True)
class _Read:
    """A node's slices, and the labels that they come to."""

    slices: list[slices.Slice]
    labels: Mapping[str, str]
