"""Which marks of ours a node is to have: said by its state alone, whatever it had before. Pure.

The label that its pool is complete keeps the next placeholder away; the annotations keep an
autoscaler from taking a node with devices that somebody has or is to have, who may have no pod on
it yet. What somebody else has set to another value is theirs.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from driver import names
from driver.resources.core import nodes
from driver.resources.dra import pools
from driver.scheduling.provisioning import provenance
from driver.scheduling.snapshot import snapshot

_TRUE = "true"
_KEEP_ANNOTATIONS = (names.KARPENTER_KEEP, names.AUTOSCALER_KEEP)
_EMPTY: Mapping[str, str] = MappingProxyType({})


def unexpired_provenance(
    one: provenance.ProvisionedFor | None, now: dt.datetime, ttl_s: float
) -> provenance.ProvisionedFor | None:
    """What a node is kept for, no longer than a node is waited for; then anybody may have it."""
    if one is None or (now - one.since).total_seconds() >= ttl_s:
        return None
    return one


@dataclass(frozen=True, slots=True)
class NodeMetadata:
    """Labels and annotations of a node, those of ours."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def current_metadata(node: nodes.Node) -> NodeMetadata:
    """What a node has, whoever put it on."""
    labels = {names.POOL_COMPLETE} & node.labels.keys()
    return NodeMetadata({key: node.labels[key] for key in labels}, node.marks)


def desired_metadata(
    view: snapshot.Snapshot, node: nodes.Node, kept_for: provenance.ProvisionedFor | None
) -> NodeMetadata:
    """What a node is to have; `kept_for` is for what it came, if that waits still."""
    found = NodeMetadata(_labels(view, node), _annotations(view, node, kept_for))
    there = current_metadata(node)
    return NodeMetadata(
        _without_foreign(found.labels, there.labels, node),
        _without_foreign(found.annotations, there.annotations, node),
    )


def is_applied(node: nodes.Node, said: NodeMetadata) -> bool:
    """Whether a node has them, by our own word, and no other of ours."""
    if {*said.labels, *said.annotations} != node.owned:
        return False
    there = current_metadata(node)
    return said.labels.items() <= there.labels.items() and (
        said.annotations.items() <= there.annotations.items()
    )


def apply_body(node: nodes.Node, said: NodeMetadata) -> dict[str, Any]:
    """Server-side apply: all that we say of a node, so that what we say no more goes."""
    told = {"labels": said.labels, "annotations": said.annotations}
    # An empty map would be a field of ours: it is left out.
    meta: dict[str, Any] = {key: dict(one) for key, one in told.items() if one}
    meta |= {"name": node.name, "uid": node.uid}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def _labels(view: snapshot.Snapshot, node: nodes.Node) -> Mapping[str, str]:
    """A pool that is being published anew stays what it was, for a placeholder would come."""
    published = view.pools.get((view.driver, node.name))
    if published is None or not published.size:
        return _EMPTY
    complete = published.complete or node.labels.get(names.POOL_COMPLETE) == _TRUE
    return {names.POOL_COMPLETE: _TRUE} if complete else _EMPTY


def _annotations(
    view: snapshot.Snapshot, node: nodes.Node, kept_for: provenance.ProvisionedFor | None
) -> Mapping[str, str]:
    """Nothing is kept on a node that goes: its autoscaler is to drain it without delay."""
    if node.leaving:
        return _EMPTY
    kept = {names.BROUGHT_FOR: kept_for.render()} if kept_for is not None else {}
    if kept or _is_held(view, node):
        kept |= dict.fromkeys(_KEEP_ANNOTATIONS, _TRUE)
    return kept


def _is_held(view: snapshot.Snapshot, node: nodes.Node) -> bool:
    """Whether somebody has a device of it, or is to: our pools are named as their nodes.

    Its slices may be gone for a while, with pods of it running.
    """
    return bool(view.used_devices(pools.Pool(view.driver, node.name, ())))


def _without_foreign(
    found: Mapping[str, str], there: Mapping[str, str], node: nodes.Node
) -> Mapping[str, str]:
    """Without what somebody else has set to something else."""
    return {
        key: value
        for key, value in found.items()
        if there.get(key, value) == value or key in node.owned
    }
