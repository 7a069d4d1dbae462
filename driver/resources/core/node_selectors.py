"""Node selectors (core/v1): parsed once, matched against a node's labels and name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from driver import ids
from driver.resources import fields

_NAME_FIELD = "metadata.name"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expression:
    """One requirement: `key operator values`, on labels or on a field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def is_satisfied(self, result: str | None) -> bool:
        """Return whether the value of the key (None: absent) satisfies the requirement."""
        match self.operator:
            case "In":
                return result is not None and result in self.values
            case "NotIn":
                return result is None or result not in self.values
            case "Exists":
                return result is not None
            case "DoesNotExist":
                return result is None
            case "Gt" | "Lt":
                return self._compares(result)
            case _:
                return False

    def _compares(self, result: str | None) -> bool:
        left = _whole(result)
        # A value must be one that a label can have: without a sign.
        right = _whole(self.values[0]) if self.values and self.values[0].isalnum() else None
        if left is None or right is None:
            return False
        return left > right if self.operator == "Gt" else left < right


def _whole(text: str | None) -> int | None:
    """A number as Go's ParseInt reads it, in 64 bits; None for anything else."""
    if text is None or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@dataclass(frozen=True, slots=True)
class Term:
    """Requirements that must all hold; an empty term matches nothing."""

    labels: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()

    def matches(self, name: ids.NodeName, labels: Mapping[str, str]) -> bool:
        """Return whether a node satisfies every requirement."""
        if not self.labels and not self.fields:
            return False
        named = all(
            expression.is_satisfied(name if expression.key == _NAME_FIELD else None)
            for expression in self.fields
        )
        return named and all(
            expression.is_satisfied(labels.get(expression.key)) for expression in self.labels
        )


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match."""

    terms: tuple[Term, ...]

    def matches(self, name: ids.NodeName, labels: Mapping[str, str]) -> bool:
        """Return whether any term matches the node."""
        return any(term.matches(name, labels) for term in self.terms)


@dataclass(frozen=True, slots=True)
class DeviceReach:
    """Nodes that can use devices: one node, all, or those that a selector matches.

    The first that is set decides, as in the reference (`NodeMatches`); with none, no node.
    """

    node: ids.NodeName | None = None
    everywhere: bool = False
    selector: NodeSelector | None = None

    def covers(self, name: ids.NodeName, labels: Mapping[str, str]) -> bool:
        """Return whether a node is among them."""
        if self.node is not None:
            return self.node == name
        if self.everywhere:
            return True
        return self.selector is not None and self.selector.matches(name, labels)


NOWHERE = DeviceReach()


def parse_reach(obj: fields.Raw, path: str) -> DeviceReach:
    """Read `nodeName`, `allNodes` and `nodeSelector` of a slice or a device."""
    node = fields.text(obj, "nodeName", path)
    selector = fields.mapping(obj, "nodeSelector", path)
    if not (node or selector or obj.get("allNodes")):
        return NOWHERE
    return DeviceReach(
        node=ids.NodeName(node) if node else None,
        everywhere=fields.flag(obj, "allNodes", path),
        selector=parse(selector, f"{path}.nodeSelector") if selector else None,
    )


def single_node_selector(node: ids.NodeName) -> NodeSelector:
    """The selector of one node by name."""
    return NodeSelector((Term(fields=(Expression(_NAME_FIELD, "In", (node,)),)),))


def parse(obj: fields.Raw, location: str = "nodeSelector") -> NodeSelector:
    """Read a v1.NodeSelector."""
    listed = fields.objects(obj, "nodeSelectorTerms", location)
    return NodeSelector(tuple(parse_term(term, path) for path, term in listed))


def parse_term(obj: fields.Raw, path: str) -> Term:
    """Read a v1.NodeSelectorTerm."""
    return Term(
        labels=parse_expressions(obj, "matchExpressions", path),
        fields=parse_expressions(obj, "matchFields", path),
    )


def parse_expressions(term: fields.Raw, key: str, location: str) -> tuple[Expression, ...]:
    """Read a list of requirements, such as `matchExpressions`."""
    return tuple(
        Expression(
            fields.required_text(item, "key", path),
            fields.required_text(item, "operator", path),
            fields.texts(item, "values", path),
        )
        for path, item in fields.objects(term, key, location)
    )


def render(selector: NodeSelector) -> dict[str, object]:
    """A v1.NodeSelector as an API object."""
    return {"nodeSelectorTerms": [_render_term(term) for term in selector.terms]}


def _render_term(term: Term) -> dict[str, object]:
    lists = {"matchExpressions": term.labels, "matchFields": term.fields}
    return {
        key: [
            {
                "key": expression.key,
                "operator": expression.operator,
                "values": list(expression.values),
            }
            for expression in expressions
        ]
        for key, expressions in lists.items()
        if expressions
    }
