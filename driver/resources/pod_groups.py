"""PodGroups, as far as a gang takes: how many of its pods have to run together.

Kubernetes' own (scheduling.k8s.io, KEP-4671) and that of the coscheduling plugin
(scheduling.x-k8s.io) say it in different fields.
"""

from dataclasses import dataclass

from driver import ids
from driver.resources import fields


@dataclass(frozen=True, slots=True)
class PodGroup:
    """`least` pods at once; 0: each for itself."""

    namespace: str
    name: str
    min_members: int

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")


def parse(obj: fields.Raw) -> PodGroup:
    """Read a PodGroup of either group. Raises BadInput."""
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    policy = fields.mapping(spec, "schedulingPolicy", "spec")
    gang = fields.mapping(policy, "gang", "spec.schedulingPolicy")
    least = fields.integer(gang, "minCount", "spec.schedulingPolicy.gang")
    return PodGroup(
        fields.text(meta, "namespace", "metadata"),
        fields.required_text(meta, "name", "metadata"),
        least or fields.integer(spec, "minMember", "spec"),
    )
