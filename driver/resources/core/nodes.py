"""Nodes, as far as it takes to know whether a pod fits on one (D5)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from driver import ids, names
from driver.resources import fields, quantities

MARKS = (
    names.PROVISIONED_FOR,
    names.FORMER_PROVISIONED_FOR,
    names.KARPENTER_KEEP,
    names.AUTOSCALER_KEEP,
)
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
        """Demand in the node's annotation; "" without one."""
        present = self.marks.get(names.PROVISIONED_FOR, "")
        return present or self.marks.get(names.FORMER_PROVISIONED_FOR, "")


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
                fields.required_text(taint, "key", path),
                fields.text(taint, "value", path),
                fields.text(taint, "effect", path),
            )
            for path, taint in fields.objects(spec, "taints", "spec")
        ),
        cordoned=fields.flag(spec, "unschedulable", "spec"),
        ready=any(
            item.get("type") == "Ready" and item.get("status") == "True"
            for _, item in fields.objects(status, "conditions", "status")
        ),
        allocatable=parse_amounts(
            fields.mapping(status, "allocatable", "status"), "status.allocatable"
        ),
        gpu_condition=next(
            (
                GpuCondition(
                    fields.text(item, "status", path),
                    fields.text(item, "reason", path),
                    fields.text(item, "message", path),
                )
                for path, item in fields.objects(status, "conditions", "status")
                if item.get("type") == names.NODE_CONDITION
            ),
            None,
        ),
        clear_quarantine=_annotation(meta, names.CLEAR_QUARANTINE),
        cordon=_annotation(meta, names.CORDON),
        marks={key: result for key in MARKS if (result := _annotation(meta, key))},
        owned=frozenset(_owned(meta)),
    )


def _annotation(meta: fields.Raw, key: str) -> str:
    result = fields.mapping(meta, "annotations", "metadata")
    return fields.text(result, key, "metadata.annotations")


def _owned(meta: fields.Raw) -> Iterator[str]:
    """Yield keys owned through server-side apply (KEP-555), from `metadata.managedFields`."""
    for path, item in fields.objects(meta, "managedFields", "metadata"):
        if item.get("manager") == names.NODES_FIELD_MANAGER and item.get("operation") == "Apply":
            tree = fields.mapping(fields.mapping(item, "fieldsV1", path), "f:metadata", path)
            for kind in ("f:labels", "f:annotations"):
                managers = fields.mapping(tree, kind, path)
                yield from (key[2:] for key in managers if key.startswith("f:"))


def render_gpu_condition(
    desired: GpuCondition, gpu_condition: GpuCondition | None, now: str
) -> dict[str, object]:
    """A status patch (strategic merge: conditions merge by type). `now` is RFC 3339."""
    changed = gpu_condition is None or gpu_condition.status != desired.status
    condition = {
        "type": names.NODE_CONDITION,
        "status": desired.status,
        "reason": desired.reason,
        "message": desired.message,
        "lastHeartbeatTime": now,
        **({"lastTransitionTime": now} if changed else {}),
    }
    return {"status": {"conditions": [condition]}}


def parse_amounts(obj: fields.Raw, path: str) -> dict[str, int]:
    """A resource list as whole numbers: `cpu` in milli-cores, everything else in its unit."""
    entries: dict[str, int] = {}
    for name, value in obj.items():
        amount = quantities.parse(value, f"{path}.{name}")
        entries[name] = amount.millis if name == "cpu" else amount.units
    return entries
