"""The expressions of the chart's dashboards and alerts, and what they ask for."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser as promql
import yaml

from hack import exposed
from hack.chart import helm

DASHBOARDS = helm.CHART / "dashboards"
RULES = helm.CHART / "alerts" / "rules.yaml"
_DCGM = frozenset({"UUID", "gpu", "device", "modelName", "pci_bus_id"})
OTHERS: Mapping[str, frozenset[str]] = {
    "up": frozenset(),
    "DCGM_FI_DEV_GPU_TEMP": _DCGM,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": _DCGM,
}
"""Metrics that are not ours, with their labels."""
TARGET = frozenset({"job", "instance", "namespace", "pod", "node", "app_kubernetes_io_component"})
"""Labels that every series gets from its target, by the chart's ServiceMonitor."""
VARIABLES = {
    "$__rate_interval": "5m",
    "$model": ".*",
    "$namespace": ".*",
    "$queue": ".*",
}
"""What Grafana puts in their place."""


class Asked(NamedTuple):
    """An expression, and whose it is."""

    where: str
    text: str


class Wrong(Exception):
    """An expression asks for what is not there."""


def all_asked() -> Iterator[Asked]:
    """Every expression, as Prometheus gets it."""
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                location = f"{path.stem}: {panel['title']} {target['refId']}"
                yield Asked(location, filled(target["expr"]))
    yield from (Asked(f"alert {alert['alert']}", alert["expr"]) for alert in alerts())


def documented() -> Iterator[Asked]:
    """The expressions that the documentation shows."""
    for path in sorted((helm.ROOT / "docs").rglob("*.md")):
        for text in re.findall(r"```promql\n(.*?)```", path.read_text(), re.DOTALL):
            yield Asked(f"{path.stem}: {text.splitlines()[0]}", text)


def alerts() -> list[dict[str, Any]]:
    """The alerts."""
    return [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]


def filled(text: str) -> str:
    """With Grafana's variables filled in."""
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return text


def read(path: Path) -> Any:
    """A dashboard."""
    return json.loads(path.read_text())


def selectors(node: Any) -> Iterator[Any]:
    """Every selector of a parsed expression."""
    if isinstance(node, promql.VectorSelector):
        yield node
    elif isinstance(node, promql.MatrixSelector):
        yield node.vector_selector
    else:
        for part in _parts(node):
            yield from selectors(part)


def _parts(node: Any) -> list[Any]:
    getattrs = [getattr(node, name, None) for name in ("expr", "lhs", "rhs")]
    return [entry for entry in (*getattrs, *getattr(node, "args", ())) if entry is not None]


def labels(node: Any) -> frozenset[str] | None:
    """The labels of what an expression yields; None for a number. Raises Wrong."""
    match node:
        case promql.VectorSelector() | promql.MatrixSelector():
            return _of_selector(next(selectors(node)))
        case promql.AggregateExpr():
            return _of_aggregate(node)
        case promql.BinaryExpr():
            return _of_binary(node)
        case promql.Call():
            return _of_call(node)
        case promql.ParenExpr() | promql.SubqueryExpr():
            return labels(node.expr)
        case _:
            if not isinstance(node, promql.NumberLiteral):
                raise Wrong(f"{type(node).__name__} is not known here")
            return None


def _of_selector(node: Any) -> frozenset[str]:
    fields = {**exposed.series(), **OTHERS}
    if node.name not in fields:
        raise Wrong(f"there is no metric {node.name}")
    field = fields[node.name] | TARGET
    _need(field, (matcher.name for matcher in node.matchers.matchers), node.name)
    return field


def _of_aggregate(node: Any) -> frozenset[str]:
    inner = labels(node.expr) or frozenset()
    if str(node.op) in {"topk", "bottomk"} and node.modifier is None:
        return inner
    by = frozenset(node.modifier.labels) if node.modifier else frozenset()
    _need(inner, by, str(node.expr))
    return by


def _of_binary(node: Any) -> frozenset[str] | None:
    left, right = labels(node.lhs), labels(node.rhs)
    if left is None or right is None:
        return right if left is None else left
    matching = node.modifier.matching if node.modifier else None
    if matching is None:
        if left != right:
            raise Wrong(f"{sorted(left)} never equal {sorted(right)}: {node}")
        return left
    _need(left, matching.labels, str(node.lhs))
    _need(right, matching.labels, str(node.rhs))
    more = frozenset(node.modifier.group_labels or ())
    _need(right, more, str(node.rhs))
    return (right if "OneToMany" in str(node.modifier.card) else left) | more


def _of_call(node: Any) -> frozenset[str] | None:
    inner = next((names for argument in node.args if (names := labels(argument)) is not None), None)
    if node.func.name == "histogram_quantile":
        _need(inner or frozenset(), ("le",), str(node))
        return (inner or frozenset()) - {"le"}
    return inner


def _need(names: frozenset[str], expected: Any, location: str) -> None:
    lacking = sorted(set(expected) - names)
    if lacking:
        raise Wrong(f"{location} has no label {', '.join(lacking)}")
