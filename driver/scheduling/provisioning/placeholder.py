"""Placeholder pod that requests a node: it has no claims, and fits no complete node. Pure.

Every autoscaler creates a node for a pod that kube-scheduler finds no node for; their support of
claims is partial (Karpenter skips pods with claims, and none reads the taint of our devices).
"""

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driver import ids, names
from driver.resources.core import node_selectors, pods
from driver.scheduling.provisioning import node_template

_CONTAINER = "placeholder"
_HOSTNAME = "kubernetes.io/hostname"
_NOT_COMPLETE = node_selectors.Expression(names.POOL_COMPLETE, "DoesNotExist")
_TEMPLATE = node_selectors.Expression(
    "cluster-autoscaler.kubernetes.io/template-node", "In", ("true",)
)
"""Label on the template that Cluster Autoscaler derives from a live node.

It has that node's labels, and no node has this one (kubernetes/autoscaler #9702).
"""
_KEEP_ANNOTATIONS = {
    names.KARPENTER_KEEP: "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Annotations of the autoscalers: a new node does not count as unused."""
_SIZED_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources requested by amount: all others exist only once the node's plugins run."""
_MAX_NAME = 63


@dataclass(frozen=True, slots=True)
class Placeholder:
    """An existing placeholder: its shape, its demand (`pod/team/train-0`), its node."""

    pod: pods.Pod

    @property
    def name(self) -> ids.NodeName:
        """Name of the node that it stands for, as long as that has no other."""
        return ids.NodeName(self.pod.name)

    @property
    def shape(self) -> str:
        """Name of the shape."""
        return self.pod.labels[names.PLACEHOLDER_LABEL]

    @property
    def demand(self) -> str:
        """Key of the demand."""
        return self.pod.scheduling_annotations.get(names.PLACEHOLDER_FOR, "")

    @property
    def node(self) -> ids.NodeName | None:
        """Node that kube-scheduler bound it to."""
        return self.pod.node

    def age_s(self, now: dt.datetime) -> float:
        """Return the seconds since its creation."""
        return (now - dt.datetime.fromisoformat(self.pod.created)).total_seconds()


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A node to request: its number among those of its first demand, and the pods for it."""

    template: node_template.NodeTemplate
    demands: tuple[str, ...]
    number: int
    pods: tuple[pods.Pod, ...]

    @property
    def demand(self) -> str:
        """Key of the first demand."""
        return self.demands[0]

    @property
    def name(self) -> str:
        """Name of the pod: the same for the same node, so that a retry finds it."""
        digest = hashlib.sha256(self.demand.encode()).hexdigest()[:10]
        return f"node-{self.template.name}-{digest}-{self.number}"[:_MAX_NAME]


def render(request: NodeRequest, namespace: str, image: str) -> dict[str, Any]:
    """Return the Pod (core/v1)."""
    first_pod = request.pods[0] if request.pods else None
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": request.name,
            "namespace": namespace,
            "labels": {names.PLACEHOLDER_LABEL: request.template.name},
            "annotations": {names.PLACEHOLDER_FOR: request.demand, **_KEEP_ANNOTATIONS},
        },
        "spec": {
            "priorityClassName": names.PLACEHOLDER_PRIORITY,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "nodeSelector": {
                **(first_pod.node_selector if first_pod else {}),
                **request.template.labels,
            },
            "affinity": _affinity(first_pod.affinity if first_pod else None),
            "tolerations": _tolerations(request),
            "containers": [_container(image, _requests(request.pods))],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def _container(image: str, requests: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": _CONTAINER,
        "image": image,
        "resources": {"requests": dict(requests)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _affinity(required_selector: node_selectors.NodeSelector | None) -> dict[str, Any]:
    """Return the pod's own requirements, on a node with an incomplete pool; one placeholder a node.

    The alternative is Cluster Autoscaler's alone: Karpenter takes the first that it can.
    """
    terms = required_selector.terms if required_selector is not None else (node_selectors.Term(),)
    new = node_selectors.NodeSelector(
        tuple(
            node_selectors.Term((*term.labels, kind), term.fields)
            for kind in (_NOT_COMPLETE, _TEMPLATE)
            for term in terms
        )
    )
    others = {"matchExpressions": [{"key": names.PLACEHOLDER_LABEL, "operator": "Exists"}]}
    apart = {"labelSelector": others, "topologyKey": _HOSTNAME}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {required: node_selectors.render(new)},
        "podAntiAffinity": {required: [apart]},
    }


def _tolerations(request: NodeRequest) -> list[Mapping[str, Any]]:
    tolerations: list[Mapping[str, Any]] = [
        {"key": entry.key, "operator": "Equal", "value": entry.value, "effect": entry.effect}
        for entry in request.template.taints
    ]
    for entry in (entry.raw for guest in request.pods for entry in guest.tolerations):
        if entry and entry not in tolerations:
            tolerations.append(entry)
    return tolerations


def _requests(guest_pods: Sequence[pods.Pod]) -> dict[str, str]:
    """Return the pods' total requests of resources that a node has from the beginning."""
    total: dict[str, int] = {}
    for name, amount in _amounts(guest_pods):
        total[name] = total.get(name, 0) + amount
    return {
        name: f"{amount}m" if name == "cpu" else str(amount)
        for name, amount in sorted(total.items())
        if amount
    }


def _amounts(guests: Iterable[pods.Pod]) -> Iterable[tuple[str, int]]:
    return (
        (name, amount)
        for guest in guests
        for name, amount in guest.requests.items()
        if name in _SIZED_RESOURCES
    )
