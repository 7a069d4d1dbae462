"""The node's cordoned GPUs, as the Node's annotation names them."""

import structlog

from driver.devices import cordon, model
from driver.resources.core import nodes
from driver.resources.publish import cordon_taints, slice_builder

_log = structlog.get_logger(__name__)


class Cordons:
    """Used by one thread. Nothing is remembered: the annotation is read before devices are told."""

    def __init__(self) -> None:
        self._annotation = ""

    def update(self, node: nodes.Node) -> None:
        """Take what the Node says now."""
        if node.cordon != self._annotation:
            _log.info("cordon asked for", annotation=node.cordon, before=self._annotation)
            self._annotation = node.cordon

    def taints(self, inventory: model.Inventory) -> slice_builder.Taints:
        """For every device of the GPUs that are named."""
        return cordon_taints.taints(inventory.known, cordon.parse_names(self._annotation))
