"""The node's cordoned GPUs, from the Node's annotation."""

import structlog

from driver.devices import cordon, model
from driver.resources.core import nodes
from driver.resources.publish import cordon_taints, slice_builder

_log = structlog.get_logger(__name__)


class Cordons:
    """Used by one thread. Not persisted: the annotation is read before devices are published."""

    def __init__(self) -> None:
        self._annotation = ""

    def update(self, node: nodes.Node) -> None:
        """Take the Node's current annotation."""
        if node.cordon != self._annotation:
            _log.info("cordon asked for", annotation=node.cordon, before=self._annotation)
            self._annotation = node.cordon

    def taints(self, inventory: model.Inventory) -> slice_builder.Taints:
        """Return the taint of every device of the cordoned GPUs."""
        return cordon_taints.taints(inventory.all_gpus, cordon.parse_names(self._annotation))
