"""Provisions and protects nodes after each scheduling cycle."""

from collections.abc import Container

from driver.controller.commit import write_pool
from driver.controller.scheduler import pending, state
from driver.controller.scheduler.provisioner import node_protection, provisioner
from driver.kube import workqueue
from driver.scheduling.lifecycle import actions
from driver.scheduling.provisioning import shape_status

_DELAY_S = 0.2
"""What comes together is planned for together."""


class NodeProvisioning:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        nodes: provisioner.Provisioner,
        protection: node_protection.NodeProtection,
        guard: pending.Guard,
    ) -> None:
        self._context = context
        self._items = items
        self._provisioner = nodes
        self._protection = protection
        self._guard = guard

    def run(self, batch: Container[write_pool.WorkItem]) -> None:
        """Provision for workloads that found no place, if a batch asks for it; else soon."""
        if write_pool.PROVISIONING in batch:
            with self._guard(write_pool.PROVISIONING):
                stale = self._context.is_stale()
                again_s = actions.STALE_RETRY_S if stale else self._provisioner.reconcile()
                if again_s is not None:
                    self._items.add_after(write_pool.PROVISIONING, again_s)
        else:
            self._items.add_after(write_pool.PROVISIONING, _DELAY_S)
        self._protection.enqueue_changed()

    def protect(self, item: write_pool.WorkItem) -> float | None:
        """Update a node's marks; return the seconds until the next update."""
        return self._protection.reconcile(item)

    def offer(self) -> shape_status.ShapeStatus:
        """Return the status of node shapes; from any thread."""
        return self._provisioner.offer()
