"""Nodes, and which configuration of the device plugin each of them has."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver import errors
from driver.resources import fields

CONFIG_LABEL = "nvidia.com/device-plugin.config"
OPERATOR_LABEL = "nvidia.com/gpu.deploy.device-plugin"
"""The GPU operator's DaemonSet of the device plugin selects nodes by it."""
_PRESENT = "nvidia.com/gpu.present"
_COUNT = "nvidia.com/gpu.count"
_RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-)")
_PLURAL = ("List", "NodeList")
PLUGINS_DEFAULTS = ""
"""The name of what a node has without a configuration: the device plugin's own defaults."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its labels, and how many it had of each of the device plugin's resources."""

    name: str
    labels: Mapping[str, str]
    resources: Mapping[str, int]

    @property
    def has_gpus(self) -> bool:
        """Return whether the device plugin runs or ran on it."""
        message = self.labels.get(_PRESENT) == "true" or CONFIG_LABEL in self.labels
        return message or any(self.resources.values())

    @property
    def gpus(self) -> int:
        """Number of GPUs, by GPU feature discovery's label; else by the plugin's capacity."""
        label = self.labels.get(_COUNT, "")
        return int(label) if label.isdigit() else sum(self.resources.values())


@dataclass(frozen=True, slots=True)
class Selection:
    """Configuration that the device plugin chooses for a node without the label.

    `operator`: the GPU operator's falls back to no configuration; the chart's to one named
    `default`, then to the only one.
    """

    names: Collection[str]
    default: str = ""
    operator: bool = False

    @property
    def usual(self) -> str | None:
        """The configuration of a node without the label; None where there is no saying."""
        if self.default:
            return self.default
        if self.operator or not self.names:
            return PLUGINS_DEFAULTS
        if "default" in self.names:
            return "default"
        return next(iter(self.names)) if len(self.names) == 1 else None

    def node_config(self, node: Node) -> str | None:
        """Return the configuration of a node; None if it names a missing one."""
        named = node.labels.get(CONFIG_LABEL, "")
        if not named:
            return self.usual
        return named if named in self.names else None


def read(document: object, location: str) -> tuple[Node, ...]:
    """Nodes of `kubectl get nodes -o json` (or yaml), or a single one.

    Raises:
        BadInput: it is not that.
    """
    nodes = tuple(_node(raw, path) for path, raw in _objects(document, location))
    if not nodes:
        raise errors.BadInput(location, "has no nodes", "what kubectl get nodes -o json prints")
    return nodes


def _objects(document: object, location: str) -> Iterator[tuple[str, fields.Raw]]:
    listed: object = document
    if isinstance(document, Mapping):
        kind = document.get("kind")
        listed = document.get("items") if kind in _PLURAL else [document]
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise errors.BadInput(location, "is no list", "what kubectl get nodes -o json prints")
    for number, item in enumerate(listed):
        path = f"{location}.items[{number}]"
        if not isinstance(item, Mapping) or item.get("kind", "Node") != "Node":
            raise errors.BadInput(path, "is no Node", "what kubectl get nodes -o json prints")
        yield path, item


def _node(raw: fields.Raw, path: str) -> Node:
    meta = fields.mapping(raw, "metadata", path)
    capacity = fields.mapping(fields.mapping(raw, "status", path), "capacity", path)
    counted = {
        name: int(str(count))
        for name, count in capacity.items()
        if _RESOURCE.match(name) and str(count).isdigit()
    }
    labels = fields.text_map(meta, "labels", f"{path}.metadata")
    return Node(fields.required_text(meta, "name", f"{path}.metadata"), labels, counted)
