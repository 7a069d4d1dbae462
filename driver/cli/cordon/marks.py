"""Marks that cordon a node or a GPU, and the writes that set them. Pure.

A whole node is one DeviceTaintRule where the server has those (Kubernetes 1.37): it holds at once,
whether or not the plugin runs. A rule names one device at most, and a GPU is published as some
twenty, which change when MIG is switched: so a GPU is named on its Node, and the plugin taints
whatever it publishes of it. Without rules the whole node is named there too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driver import errors, ids, names
from driver.cli.cordon import targets
from driver.devices import cordon


@dataclass(frozen=True, slots=True)
class CordonMarks:
    """Marks of a node. `rule`: its rule exists; `has_rules`: the server knows them.

    `version` is the Node's resource version.
    """

    annotation: frozenset[str]
    version: str
    rule: bool = False
    has_rules: bool = True

    @property
    def is_whole_node(self) -> bool:
        """Return whether the whole node is cordoned."""
        return self.rule or names.ALL in self.annotation


@dataclass(frozen=True, slots=True)
class MakeRule:
    """Create the node's rule."""

    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"create DeviceTaintRule {self.body['metadata']['name']}"


@dataclass(frozen=True, slots=True)
class DropRule:
    """Delete the node's rule."""

    name: str

    def __str__(self) -> str:
        return f"delete DeviceTaintRule {self.name}"


@dataclass(frozen=True, slots=True)
class Annotate:
    """Write the annotation of a node, if it is at `version` still; "" takes it away."""

    node: ids.NodeName
    value: str
    version: str

    @property
    def body(self) -> Mapping[str, Any]:
        """Return the merge patch."""
        noted = {names.CORDON: self.value or None}
        return {"metadata": {"annotations": noted, "resourceVersion": self.version}}

    def __str__(self) -> str:
        if not self.value:
            return f"remove annotation {names.CORDON} from node {self.node}"
        return f"annotate node {self.node} with {names.CORDON}={self.value}"


Write = MakeRule | DropRule | Annotate


def rule_name(node: ids.NodeName) -> str:
    """`ration-cordon-<node>`."""
    return f"ration-cordon-{node}"


def parse_marks(obj: Mapping[str, Any], *, rule: bool, has_rules: bool) -> CordonMarks:
    """Parse a Node's marks, and whether its rule exists."""
    meta = obj["metadata"]
    message = str((meta.get("annotations") or {}).get(names.CORDON, ""))
    return CordonMarks(cordon.parse_names(message), str(meta["resourceVersion"]), rule, has_rules)


def cordon_writes(target: targets.Target, now: CordonMarks, driver: str) -> tuple[Write, ...]:
    """Return the writes that cordon the target; none if it is cordoned."""
    if now.is_whole_node or (target.gpu and target.gpu in now.annotation):
        return ()
    if not target.gpu and now.has_rules:
        return (MakeRule(_rule(target.node, driver)),)
    more = target.gpu or names.ALL
    value = cordon.render_names({*now.annotation, more})
    return (Annotate(target.node, value, now.version),)


def uncordon_writes(
    target: targets.Target, now: CordonMarks, also: frozenset[str]
) -> tuple[Write, ...]:
    """Return the writes that remove the target's own mark; `also` are the GPU's other names.

    GPUs that were cordoned for themselves stay so when their node is uncordoned.

    Raises:
        BadInput: a GPU is cordoned with all of its node.
    """
    if target.gpu and now.is_whole_node:
        text = f"the whole node is cordoned: ration uncordon {target.node}, then cordon the others"
        raise errors.BadInput(str(target), text)
    gone = {target.gpu, *also} if target.gpu else {names.ALL}
    left = now.annotation - gone
    writes: list[Write] = []
    if now.rule and not target.gpu:
        writes.append(DropRule(rule_name(target.node)))
    if left != now.annotation:
        writes.append(Annotate(target.node, cordon.render_names(left), now.version))
    return tuple(writes)


def _rule(node: ids.NodeName, driver: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": rule_name(node),
            "labels": {"app.kubernetes.io/managed-by": "ration", names.CORDON: "true"},
        },
        "spec": {
            "deviceSelector": {"driver": driver, "pool": node},
            "taint": {"key": names.CORDONED_TAINT, "effect": "NoSchedule"},
        },
    }
