"""Topology spread constraints (core/v1) of a pod, with defaults filled in."""

from collections.abc import Mapping
from dataclasses import dataclass

from driver.resources import fields
from driver.resources.core import label_selectors


@dataclass(frozen=True, slots=True)
class Constraint:
    """The evenness of the pods that a selector matches over the values of a node label.

    `required` is DoNotSchedule. `honors_affinity` and `honors_taints` are the node inclusion
    policies (KEP-3094). The selector asks for the pod's own values of `matchLabelKeys` as well.
    """

    max_skew: int
    topology_key: str
    selector: label_selectors.LabelSelector | None
    required: bool = True
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a pod's labels match."""
        return self.selector is not None and self.selector.matches(labels)


def parse(spec: fields.Raw, labels: Mapping[str, str]) -> tuple[Constraint, ...]:
    """Read `spec.topologySpreadConstraints` of a pod with these labels."""
    listed = fields.objects(spec, "topologySpreadConstraints", "spec")
    return tuple(_constraint(entry, path, labels) for path, entry in listed)


def _constraint(obj: fields.Raw, prefix: str, labels: Mapping[str, str]) -> Constraint:
    selector = label_selectors.parse(obj, "labelSelector", prefix)
    keys = fields.texts(obj, "matchLabelKeys", prefix)
    same = {key: labels[key] for key in keys if key in labels}
    return Constraint(
        max_skew=fields.integer(obj, "maxSkew", prefix, 1),
        topology_key=fields.text(obj, "topologyKey", prefix),
        selector=selector.with_labels(same) if selector is not None and same else selector,
        required=fields.text(obj, "whenUnsatisfiable", prefix, "DoNotSchedule") == "DoNotSchedule",
        min_domains=fields.integer(obj, "minDomains", prefix, 1),
        honors_affinity=fields.text(obj, "nodeAffinityPolicy", prefix, "Honor") == "Honor",
        honors_taints=fields.text(obj, "nodeTaintsPolicy", prefix, "Ignore") == "Honor",
    )
