"""Nodes, as far as it takes to know whether a pod fits on one (D5)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from driver import ids, names
from driver.resources import fields, quantities

MARKS = (names.BROUGHT_FOR, names.KARPENTER_KEEP, names.AUTOSCALER_KEEP)
"""Annotations by which a node is kept: the controller's, or somebody else's."""

BLOCKING = frozenset({"NoSchedule", "NoExecute"})
"""Effects of taints that keep pods away."""
PREFER_NO_SCHEDULE = "PreferNoSchedule"
"""The effect of a taint by which other nodes are preferred."""


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

    `clear_quarantine` and `cordon` are the annotations of those names, `marks` those of `MARKS`;
    `owned` are the keys of labels and annotations that the controller itself has applied.
    `leaving` is known in a picture alone: the taint by which the node is about to be taken away.
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
    marks: Mapping[str, str] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()
    leaving: str = ""

    @property
    def provisioned_for(self) -> str:
        """What it was asked for, as its annotation says; "" without one."""
        return self.marks.get(names.BROUGHT_FOR, "")


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
        allocatable=parse_amounts(
            fields.mapping(status, "allocatable", "status"), "status.allocatable"
        ),
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
        marks={key: found for key in MARKS if (found := _annotation(meta, key))},
        owned=frozenset(_owned(meta)),
    )


def _annotation(meta: fields.Raw, key: str) -> str:
    found = fields.mapping(meta, "annotations", "metadata")
    return fields.text(found, key, "metadata.annotations")


def _owned(meta: fields.Raw) -> Iterator[str]:
    """By server-side apply (KEP-555), as `metadata.managedFields` tells."""
    for at, one in fields.objects(meta, "managedFields", "metadata"):
        if one.get("manager") == names.NODES_FIELD_MANAGER and one.get("operation") == "Apply":
            tree = fields.mapping(fields.mapping(one, "fieldsV1", at), "f:metadata", at)
            for kind in ("f:labels", "f:annotations"):
                found = fields.mapping(tree, kind, at)
                yield from (key[2:] for key in found if key.startswith("f:"))


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


def parse_amounts(obj: fields.Raw, where: str) -> dict[str, int]:
    """A resource list as whole numbers: `cpu` in milli-cores, everything else in its unit."""
    found: dict[str, int] = {}
    for name, value in obj.items():
        amount = quantities.parse(value, f"{where}.{name}")
        found[name] = amount.millis if name == "cpu" else amount.units
    return found
