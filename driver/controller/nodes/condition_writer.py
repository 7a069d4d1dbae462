"""Writes the condition that sums up a node's GPUs."""

from collections.abc import Callable, Iterable

from driver import clock, ids
from driver.controller.commit import workload_writer, write_pool
from driver.controller.nodes import condition
from driver.kube import store
from driver.resources.core import nodes
from driver.resources.dra import slices


class NodeConditions:
    """On the decider's thread. `slices_of` returns the slices of a node's own pool."""

    def __init__(
        self,
        node_store: store.Store[nodes.Node],
        slices_of: Callable[[ids.NodeName], Iterable[slices.Slice]],
        writers: workload_writer.WorkloadWriter,
        time: clock.Clock,
    ) -> None:
        self._nodes = node_store
        self._slices_of = slices_of
        self._writers = writers
        self._clock = time

    def reconcile(self, item: write_pool.WorkItem) -> None:
        """Write a node's condition if it changed."""
        node = self._nodes.get(item.key)
        desired = condition.gpu_condition(self._slices_of(ids.NodeName(item.key)))
        if node is not None and desired is not None and desired != node.gpu_condition:
            self._writers.set_node_condition(node, desired, clock.rfc3339(self._clock.now()))
