"""The pod by which a node is asked for: it claims nothing, and fits no node that is complete. Pure.

Every autoscaler brings a node for a pod that kube-scheduler finds no node for; of claims they know
less (Karpenter leaves pods with claims out, and none reads the taint of our devices).
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
"""On what Cluster Autoscaler makes of a live node to see what a new one would be like.

It has that node's labels, and no node has this one (kubernetes/autoscaler #9702).
"""
_KEEP_ANNOTATIONS = {
    names.KARPENTER_KEEP: "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Annotations of the autoscalers' own: the node that has just come is not taken for unused."""
_SIZED_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
"""What is asked for by amount: all else a node has only once its own plugins run."""
_MAX_NAME = 63


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One that is there: of which shape, for what (`pod/team/train-0`), on which node by now."""

    pod: pods.Pod

    @property
    def name(self) -> ids.NodeName:
        """Of the node that it stands for, as long as that has no other."""
        return ids.NodeName(self.pod.name)

    @property
    def shape(self) -> str:
        """The shape's name."""
        return self.pod.labels[names.PLACEHOLDER_LABEL]

    @property
    def demand(self) -> str:
        """What waits for the node."""
        return self.pod.has_requests.get(names.PLACEHOLDER_FOR, "")

    @property
    def node(self) -> ids.NodeName | None:
        """Where kube-scheduler bound it."""
        return self.pod.node

    def age_s(self, now: dt.datetime) -> float:
        """Seconds since it was made."""
        return (now - dt.datetime.fromisoformat(self.pod.created)).total_seconds()


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A node to be asked for: its place among those of its first wish, and who is to go on it."""

    template: node_template.NodeTemplate
    demands: tuple[str, ...]
    number: int
    pods: tuple[pods.Pod, ...]

    @property
    def demand(self) -> str:
        """The first that is to go on it."""
        return self.demands[0]

    @property
    def name(self) -> str:
        """The pod's: the same for the same node, so that a retry meets its own work."""
        digest = hashlib.sha256(self.demand.encode()).hexdigest()[:10]
        return f"node-{self.template.name}-{digest}-{self.number}"[:_MAX_NAME]


def render(ask: NodeRequest, namespace: str, image: str) -> dict[str, Any]:
    """The Pod (core/v1)."""
    first = ask.pods[0] if ask.pods else None
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": ask.name,
            "namespace": namespace,
            "labels": {names.PLACEHOLDER_LABEL: ask.template.name},
            "annotations": {names.PLACEHOLDER_FOR: ask.demand, **_KEEP_ANNOTATIONS},
        },
        "spec": {
            "priorityClassName": names.PLACEHOLDER_PRIORITY,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "nodeSelector": {**(first.node_selector if first else {}), **ask.template.labels},
            "affinity": _affinity(first.affinity if first else None),
            "tolerations": _tolerations(ask),
            "containers": [_container(image, _requests(ask.pods))],
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


def _affinity(wanted: node_selectors.NodeSelector | None) -> dict[str, Any]:
    """What the guest requires, on a node whose pool is not complete; one placeholder a node.

    The alternative is Cluster Autoscaler's alone: Karpenter takes the first that it can.
    """
    terms = wanted.terms if wanted is not None else (node_selectors.Term(),)
    new = node_selectors.NodeSelector(
        tuple(
            node_selectors.Term((*one.labels, kind), one.fields)
            for kind in (_NOT_COMPLETE, _TEMPLATE)
            for one in terms
        )
    )
    others = {"matchExpressions": [{"key": names.PLACEHOLDER_LABEL, "operator": "Exists"}]}
    apart = {"labelSelector": others, "topologyKey": _HOSTNAME}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {required: node_selectors.render(new)},
        "podAntiAffinity": {required: [apart]},
    }


def _tolerations(ask: NodeRequest) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = [
        {"key": one.key, "operator": "Equal", "value": one.value, "effect": one.effect}
        for one in ask.template.taints
    ]
    for one in (one.raw for guest in ask.pods for one in guest.tolerations):
        if one and one not in found:
            found.append(one)
    return found


def _requests(guests: Sequence[pods.Pod]) -> dict[str, str]:
    """What the guests ask together, of what a node has from the first moment on."""
    total: dict[str, int] = {}
    for name, amount in _amounts(guests):
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
