"""PodGroups, as far as a gang takes: how many of its pods have to run together, and where.

Kubernetes' own (scheduling.k8s.io, KEP-4671) and that of the coscheduling plugin
(scheduling.x-k8s.io) say it in different fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from driver import ids
from driver.resources import fields

_DISRUPTED_TOGETHER = "PodGroup"
"""The mode of v1alpha2 (Kubernetes 1.36); newer versions have an object `all`."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """`min_members` pods at once; 0: each for itself.

    The rest is said by Kubernetes' own groups alone. `priority` is that of all its pods; None: not
    said. `topology_key` is the node label of which all its pods need one value, `parent` its
    CompositePodGroup. `disrupted_together`: its pods are evicted together or not at all.
    """

    namespace: str
    name: str
    min_members: int
    priority: int | None = None
    topology_key: str = ""
    parent: str = ""
    disrupted_together: bool = False

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")

    @property
    def lets_pods_go_alone(self) -> bool:
        """Return whether a pod of it can be evicted while the others run on."""
        return self.min_members < 1 and not self.disrupted_together


def parse(obj: fields.Raw) -> PodGroup:
    """Read a PodGroup of either group. Raises BadInput."""
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    policy = fields.mapping(spec, "schedulingPolicy", "spec")
    gang = fields.mapping(policy, "gang", "spec.schedulingPolicy")
    min_count = fields.integer(gang, "minCount", "spec.schedulingPolicy.gang")
    has_priority = spec.get("priority") is not None
    return PodGroup(
        fields.text(meta, "namespace", "metadata"),
        fields.required_text(meta, "name", "metadata"),
        min_count or fields.integer(spec, "minMember", "spec"),
        fields.integer(spec, "priority", "spec") if has_priority else None,
        _topology_key(spec),
        fields.text(spec, "parentCompositePodGroupName", "spec"),
        _is_disrupted_together(spec),
    )


def _topology_key(spec: fields.Raw) -> str:
    path = "spec.schedulingConstraints"
    constraints = fields.mapping(spec, "schedulingConstraints", "spec")
    keys = (
        fields.required_text(item, "key", item_path)
        for item_path, item in fields.objects(constraints, "topology", path)
    )
    return next(keys, "")  # the API allows one


def _is_disrupted_together(spec: fields.Raw) -> bool:
    mode = spec.get("disruptionMode")
    if isinstance(mode, Mapping):
        return mode.get("all") is not None
    return mode == _DISRUPTED_TOGETHER
