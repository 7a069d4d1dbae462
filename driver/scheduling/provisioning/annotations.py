"""Labels and annotations that the controller sets on a node, derived from its state alone. Pure.

The label for a complete pool excludes further placeholders; the annotations keep an autoscaler from
removing a node with devices that are allocated or reserved, perhaps without a pod on it yet. Keys
that another manager has set to another value are left to it.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from driver import clock, names
from driver.resources.core import nodes
from driver.resources.dra import pools
from driver.scheduling.snapshot import snapshot


@dataclass(frozen=True, slots=True)
class ProvisionedFor:
    """Key of the demand, and when its node arrived."""

    demand: str
    since: dt.datetime

    def render(self) -> str:
        """Return the annotation's value."""
        return f"{self.demand} {clock.rfc3339(self.since)}"


def parse(text: str) -> ProvisionedFor | None:
    """Parse the value; None if it is missing or foreign."""
    demand_key, _, since = text.partition(" ")
    try:
        moment = dt.datetime.fromisoformat(since)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return ProvisionedFor(demand_key, aware) if demand_key.count("/") > 1 else None


_TRUE = "true"
_KEEP_ANNOTATIONS = (names.KARPENTER_KEEP, names.AUTOSCALER_KEEP)
_EMPTY: Mapping[str, str] = MappingProxyType({})


def unexpired_provenance(
    provisioned_for: ProvisionedFor | None, now: dt.datetime, ttl_s: float
) -> ProvisionedFor | None:
    """Return what a node was provisioned for, until its TTL; then every workload may use it."""
    if provisioned_for is None or (now - provisioned_for.since).total_seconds() >= ttl_s:
        return None
    return provisioned_for


@dataclass(frozen=True, slots=True)
class NodeMetadata:
    """Labels and annotations of a node, those of ours."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def current_metadata(node: nodes.Node) -> NodeMetadata:
    """Return our keys of a node, whoever set them."""
    labels = {names.POOL_COMPLETE} & node.labels.keys()
    return NodeMetadata({key: node.labels[key] for key in labels}, node.marks)


def desired_metadata(
    view: snapshot.Snapshot, node: nodes.Node, kept_for: ProvisionedFor | None
) -> NodeMetadata:
    """Return the desired metadata; `kept_for` is the demand of the node, if it is still pending."""
    desired = NodeMetadata(_labels(view, node), _annotations(view, node, kept_for))
    current = current_metadata(node)
    return NodeMetadata(
        _without_foreign(desired.labels, current.labels, node),
        _without_foreign(desired.annotations, current.annotations, node),
    )


def is_applied(node: nodes.Node, desired: NodeMetadata) -> bool:
    """Return whether a node has exactly these, managed by us."""
    if {*desired.labels, *desired.annotations} != node.owned:
        return False
    current = current_metadata(node)
    return desired.labels.items() <= current.labels.items() and (
        desired.annotations.items() <= current.annotations.items()
    )


def apply_body(node: nodes.Node, desired: NodeMetadata) -> dict[str, Any]:
    """Return the server-side apply body: all our keys, so that dropped ones are removed."""
    fields_by_name = {"labels": desired.labels, "annotations": desired.annotations}
    # An empty map would be an owned field: it is left out.
    meta: dict[str, Any] = {key: dict(values) for key, values in fields_by_name.items() if values}
    meta |= {"name": node.name, "uid": node.uid}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def _labels(view: snapshot.Snapshot, node: nodes.Node) -> Mapping[str, str]:
    """Return the label of a complete pool; a pool being republished keeps it."""
    published = view.pools.get((view.driver, node.name))
    if published is None or not published.size:
        return _EMPTY
    complete = published.complete or node.labels.get(names.POOL_COMPLETE) == _TRUE
    return {names.POOL_COMPLETE: _TRUE} if complete else _EMPTY


def _annotations(
    view: snapshot.Snapshot, node: nodes.Node, kept_for: ProvisionedFor | None
) -> Mapping[str, str]:
    """Return no keep annotations for a node to be removed: its autoscaler drains it at once."""
    if node.leaving:
        return _EMPTY
    annotations = {names.PROVISIONED_FOR: kept_for.render()} if kept_for is not None else {}
    if annotations or _is_held(view, node):
        annotations |= dict.fromkeys(_KEEP_ANNOTATIONS, _TRUE)
    return annotations


def _is_held(view: snapshot.Snapshot, node: nodes.Node) -> bool:
    """Return whether a device of it is allocated or reserved: our pools are named as their nodes.

    Its slices may be gone for a while, with pods of it running.
    """
    return bool(view.used_devices(pools.Pool(view.driver, node.name, ())))


def _without_foreign(
    desired: Mapping[str, str], current: Mapping[str, str], node: nodes.Node
) -> Mapping[str, str]:
    """Return the keys without those that another manager has set to another value."""
    return {
        key: value
        for key, value in desired.items()
        if current.get(key, value) == value or key in node.owned
    }
