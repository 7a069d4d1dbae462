"""Provisioner settings. Pure."""

from dataclasses import dataclass

from driver.api import node_shapes


@dataclass(frozen=True, slots=True)
class ProvisionerSettings:
    """Present if the controller has a document of shapes.

    `namespace` is the controller's, with the placeholders of `image` and the ConfigMap
    `observed_configmap` of observed shapes. A taint with a key of `interruption_taints` announces
    the removal of a node.
    """

    document: node_shapes.NodeShapes
    namespace: str
    image: str
    observed_configmap: str
    interruption_taints: frozenset[str]
