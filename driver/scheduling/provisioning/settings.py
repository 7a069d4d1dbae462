"""How nodes on demand are done: what the controller's settings say of it, read. Pure."""

from dataclasses import dataclass

from driver.api import node_shapes


@dataclass(frozen=True, slots=True)
class ProvisionerSettings:
    """There where the controller is given a document of shapes.

    `namespace` is the controller's, in which placeholders of `image` are, and the ConfigMap `seen`
    of what live nodes have. A node with a taint of a key in `interrupting` is about to go.
    """

    document: node_shapes.NodeShapes
    namespace: str
    image: str
    observed_configmap: str
    interruption_taints: frozenset[str]
