"""Writes the annotations and labels that protect nodes from scale-down."""

from collections.abc import Callable

import structlog

from driver import errors, ids, names
from driver.api import crd
from driver.controller import ports
from driver.controller.commit import write_pool
from driver.controller.scheduler import state
from driver.kube import gvr, workqueue
from driver.resources.core import nodes
from driver.scheduling.provisioning import annotations
from driver.scheduling.provisioning import settings as provisioning_settings

_log = structlog.get_logger(__name__)
_RECHECK_S = 15.0
"""What a node was brought for may end without anything of the node changing."""
_SETTLE_S = 0.05
ProvenanceOf = Callable[[nodes.Node], annotations.ProvisionedFor | None]
"""What a node came for, as long as that waits."""


class NodeProtection:
    """On the decider's thread; writes run on the pool, fenced by the term."""

    def __init__(
        self,
        context: state.SchedulerContext,
        writer: ports.Writer,
        pool: write_pool.WritePool,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        how: provisioning_settings.ProvisionerSettings,
        kept_for: ProvenanceOf,
    ) -> None:
        self._context = context
        self._writer = writer
        self._pool = pool
        self._items = items
        self._ttl_s = crd.seconds(how.document.ttl)
        self._provenance = kept_for
        self._revision = -1

    def enqueue_changed(self) -> None:
        """Enqueue every node that changed since the last call."""
        view = self._context.refresh_view()
        changed = view.changed_since(self._revision)
        self._revision = view.revision
        for name in view.nodes if changed is None else changed[1]:
            self._items.add_after(write_pool.WorkItem("marks", ids.Key(name)), _SETTLE_S)

    def reconcile(self, item: write_pool.WorkItem) -> float | None:
        """Update a node's marks; return the seconds until the next reconcile."""
        node = self._context.refresh_view().nodes.get(ids.NodeName(item.key))
        if node is None:
            return None
        origin = annotations.unexpired_provenance(
            self._provenance(node), self._context.clock.now(), self._ttl_s
        )
        desired = annotations.desired_metadata(self._context.view, node, origin)
        if not annotations.is_applied(node, desired):
            self._pool.run(lambda: self._write(item, node, desired))
        return _RECHECK_S if origin is not None else None

    def _write(
        self, item: write_pool.WorkItem, node: nodes.Node, desired: annotations.NodeMetadata
    ) -> None:
        try:
            answer = self._writer.apply(
                gvr.NODES,
                node.name,
                annotations.apply_body(node, desired),
                manager=names.NODES_FIELD_MANAGER,
            )
        except errors.NotFound:
            return
        except errors.Conflict as error:
            # It is theirs as of now, and the node is looked at when it is seen to have changed.
            _log.info("node marked by somebody else", node=node.name, error=str(error))
            return
        except errors.ApiError as error:
            _log.info("node not marked", node=node.name, error=str(error))
            self._items.retry(item, error.retry_after_s or 0.0)
            return
        self._items.forget(item)
        self._context.stores.nodes.observe(answer)
        _log.info("node marked", node=node.name, marks={**desired.labels, **desired.annotations})
