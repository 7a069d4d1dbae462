"""Random fields of pods and nodes, as raw API objects with the server's defaults filled in."""

import random  # noqa: TID251 - a drawing that anyone can repeat
from collections.abc import Sequence
from typing import Any

Raw = dict[str, Any]
HOST, ZONE, REGION = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
KEYS = (HOST, ZONE, ZONE, "rack")
NAMESPACES = {"red": {"team": "x"}, "blue": {"team": "y", "tier": "1"}, "bare": {}}
LOST = "gone"
"""A namespace of pods that is not there itself."""
APPS, TIERS = ("web", "db", "job"), ("1", "2", "10", "x")


class Draw(random.Random):
    """The source of a seed."""

    def chance(self, part: float) -> bool:
        """True in so large a part of all draws."""
        return self.random() < part

    def some(self, choices: Sequence[Any], most: int) -> list[Any]:
        """Up to so many different ones."""
        return self.sample(choices, self.randint(0, min(most, len(choices))))


def labels(draw: Draw) -> dict[str, str]:
    result = {}
    if draw.chance(0.9):
        result["app"] = draw.choice(APPS)
    if draw.chance(0.4):
        result["tier"] = draw.choice(TIERS)
    return result


def selector(draw: Draw) -> Raw | None:
    if draw.chance(0.05):
        return None
    if draw.chance(0.07):
        return {}
    document: Raw = {}
    if draw.chance(0.7):
        document["matchLabels"] = {"app": draw.choice(APPS)}
    if draw.chance(0.4) or not document:
        document["matchExpressions"] = [expression(draw, ("app", "tier"), (*APPS, *TIERS))]
    return document


def expression(draw: Draw, keys: Sequence[str], values: Sequence[str]) -> Raw:
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    document: Raw = {"key": draw.choice(keys), "operator": operator}
    if operator in {"In", "NotIn"}:
        document["values"] = draw.some(values, 3) or [values[0]]
    return document


def term(draw: Draw) -> Raw:
    """A v1.PodAffinityTerm."""
    document: Raw = {"topologyKey": draw.choice(KEYS)}
    chosen = selector(draw)
    if chosen is not None:
        document["labelSelector"] = chosen
    if draw.chance(0.25):
        document["namespaces"] = draw.some([*NAMESPACES, LOST], 2)
    if draw.chance(0.25):
        spaces: list[Raw] = [
            {},
            {"matchLabels": {"team": "x"}},
            {"matchExpressions": [expression(draw, ("team", "tier"), ("x", "y", "1"))]},
        ]
        document["namespaceSelector"] = draw.choice(spaces)
    return document


def node_term(draw: Draw, names: Sequence[str]) -> Raw:
    """A v1.NodeSelectorTerm; now and then an empty one."""
    document: Raw = {}
    if draw.chance(0.8):
        document["matchExpressions"] = [
            node_expression(draw, names) for _ in range(draw.randint(1, 2))
        ]
    if draw.chance(0.2):
        operator = draw.choice(("In", "NotIn"))
        values = [draw.choice(names)]
        document["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": values}]
    return document


def node_expression(draw: Draw, names: Sequence[str]) -> Raw:
    if draw.chance(0.3):
        number = str(draw.choice((0, 1, 2, 10, -3)))
        return {"key": "size", "operator": draw.choice(("Gt", "Lt")), "values": [number]}
    return expression(draw, (ZONE, HOST, "size"), ("east", "west", *names, "2"))


def affinity(draw: Draw, names: Sequence[str]) -> Raw:
    document: Raw = {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if draw.chance(0.25):
        document["podAffinity"] = {required: [term(draw) for _ in range(draw.choice((1, 1, 2)))]}
    if draw.chance(0.35):
        document["podAntiAffinity"] = {
            required: [term(draw) for _ in range(draw.choice((1, 1, 2)))]
        }
    if draw.chance(0.2):
        terms = [node_term(draw, names) for _ in range(draw.choice((1, 1, 2)))]
        document["nodeAffinity"] = {required: {"nodeSelectorTerms": terms}}
    return document


def constraint(draw: Draw) -> Raw:
    """A v1.TopologySpreadConstraint."""
    anyway = draw.chance(0.15)
    document: Raw = {
        "maxSkew": draw.choice((1, 1, 2, 3)),
        "topologyKey": draw.choice(KEYS),
        "whenUnsatisfiable": "ScheduleAnyway" if anyway else "DoNotSchedule",
    }
    chosen = selector(draw)
    if chosen is not None:
        document["labelSelector"] = chosen
    if draw.chance(0.25) and not anyway:
        document["minDomains"] = draw.randint(1, 4)
    if draw.chance(0.3) and chosen is not None:
        document["matchLabelKeys"] = draw.some(("app", "tier", "none"), 2)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.chance(0.4):
            document[policy] = draw.choice(("Honor", "Ignore"))
    return document


def taint(draw: Draw) -> Raw:
    effect = draw.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"))
    return {"key": draw.choice(("down", "team")), "value": draw.choice(("", "x")), "effect": effect}


def toleration(draw: Draw) -> Raw:
    if draw.chance(0.1):
        return {"operator": "Exists"}
    key = draw.choice(("down", "team", "node.kubernetes.io/unschedulable"))
    document: Raw = {"key": key}
    if draw.chance(0.5):
        document["operator"] = "Exists"
    else:
        document["value"] = draw.choice(("", "x"))
        if draw.chance(0.3):
            document["operator"] = draw.choice(("Equal", "Gt", "Lt"))
    if draw.chance(0.6):
        document["effect"] = draw.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return document


_AMOUNTS = {
    "cpu": ("0", "100m", "250m", "1", "1500m", "2"),
    "memory": ("0", "128Mi", "1Gi", "1500M", "2Gi", "1000m"),
    "ephemeral-storage": ("0", "1Gi", "500M"),
    "example.com/thing": ("0", "1", "2"),
    "hugepages-2Mi": ("0", "2Mi", "4Mi"),
}


def amounts(draw: Draw, part: float = 0.5, names: Sequence[str] = tuple(_AMOUNTS)) -> Raw:
    """A resource list."""
    return {name: draw.choice(_AMOUNTS[name]) for name in names if draw.chance(part)}


def containers(draw: Draw, kind: str, most: int) -> list[Raw]:
    created = []
    for number in range(draw.randint(0 if kind == "init" else 1, most)):
        entry: Raw = {"name": f"{kind}-{number}", "image": "none"}
        if draw.chance(0.7):
            entry["resources"] = {"requests": amounts(draw, 0.35)}
        if kind == "init" and draw.chance(0.4):
            entry["restartPolicy"] = "Always"
        if draw.chance(0.15):
            entry["ports"] = [port(draw)]
        created.append(entry)
    return created


def port(draw: Draw) -> Raw:
    document: Raw = {"containerPort": 80}
    if draw.chance(0.9):
        document["hostPort"] = draw.choice((80, 443))
    if draw.chance(0.3):
        document["protocol"] = draw.choice(("TCP", "UDP"))
    if draw.chance(0.5):
        document["hostIP"] = draw.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0", "::", ""))  # noqa: S104
    return document


_STATUSES = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}


def resized(draw: Draw, spec: Raw) -> Raw:
    """The status of a pod that was resized in place, or is about to be."""
    document: Raw = {}
    if draw.chance(0.3):
        reason = draw.choice(("Infeasible", "Deferred"))
        document["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    for key, kind in _STATUSES.items():
        statuses = []
        for container in spec.get(kind, ()):
            status: Raw = {"name": container["name"]}
            if draw.chance(0.6):
                status["allocatedResources"] = amounts(draw, 0.4, ("cpu", "memory"))
            if draw.chance(0.5):
                status["resources"] = {"requests": amounts(draw, 0.4, ("cpu", "memory"))}
            statuses.append(status)
        document[key] = statuses
    if draw.chance(0.3):
        document["resources"] = {"requests": amounts(draw, 0.5, ("cpu", "memory"))}
        if draw.chance(0.7):
            document["allocatedResources"] = amounts(draw, 0.5, ("cpu", "memory"))
    return document
