"""Nodes, as far as it takes to know whether a pod fits on one (D5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver import ids, names
from driver.resources import fields, quantity


@dataclass(frozen=True, slots=True)
class NodeTaint:
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class GpuCondition:
    """The Node condition that sums up its GPUs' health: `status` is True, False or Unknown."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `allocatable` is in the resource's own unit: cpu in milli-cores, others whole.

    `clear_quarantine`, `cordon` and `brought_for` are the annotations of those names.
    """

    name: ids.NodeName
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[NodeTaint, ...] = ()
    cordoned: bool = False
    ready: bool = True
    allocatable: Mapping[str, int] = field(default_factory=dict)
    gpu_condition: GpuCondition | None = None
    clear_quarantine: str = ""
    cordon: str = ""
    brought_for: str = ""


def parse(obj: fields.Raw) -> Node:
    """Read a Node."""
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    status = fields.mapping(obj, "status")
    return Node(
        name=ids.NodeName(fields.required_text(meta, "name", "metadata")),
        uid=fields.text(meta, "uid", "metadata"),
        labels=fields.text_map(meta, "labels", "metadata"),
        taints=tuple(
            NodeTaint(
                fields.required_text(taint, "key", at),
                fields.text(taint, "value", at),
                fields.text(taint, "effect", at),
            )
            for at, taint in fields.objects(spec, "taints", "spec")
        ),
        cordoned=fields.flag(spec, "unschedulable", "spec"),
        ready=any(
            one.get("type") == "Ready" and one.get("status") == "True"
            for _, one in fields.objects(status, "conditions", "status")
        ),
        allocatable=amounts(fields.mapping(status, "allocatable", "status"), "status.allocatable"),
        gpu_condition=next(
            (
                GpuCondition(
                    fields.text(one, "status", at),
                    fields.text(one, "reason", at),
                    fields.text(one, "message", at),
                )
                for at, one in fields.objects(status, "conditions", "status")
                if one.get("type") == names.NODE_CONDITION
            ),
            None,
        ),
        clear_quarantine=_annotation(meta, names.CLEAR_QUARANTINE),
        cordon=_annotation(meta, names.CORDON),
        brought_for=_annotation(meta, names.BROUGHT_FOR),
    )


def _annotation(meta: fields.Raw, key: str) -> str:
    found = fields.mapping(meta, "annotations", "metadata")
    return fields.text(found, key, "metadata.annotations")


def render_gpu_condition(
    wanted: GpuCondition, before: GpuCondition | None, now: str
) -> dict[str, object]:
    """A status patch (strategic merge: conditions merge by type). `now` is RFC 3339."""
    changed = before is None or before.status != wanted.status
    condition = {
        "type": names.NODE_CONDITION,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastHeartbeatTime": now,
        **({"lastTransitionTime": now} if changed else {}),
    }
    return {"status": {"conditions": [condition]}}


def amounts(obj: fields.Raw, where: str) -> dict[str, int]:
    """A resource list as whole numbers: `cpu` in milli-cores, everything else in its unit."""
    found: dict[str, int] = {}
    for name, value in obj.items():
        amount = quantity.parse(value, f"{where}.{name}")
        found[name] = amount.millis if name == "cpu" else amount.units
    return found
