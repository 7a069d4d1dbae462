"""Preferred terms, constraints ScheduleAnyway and taints PreferNoSchedule on a drawn cluster."""

from typing import Any

from tests.oracle.filters import drawing, pieces

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHTS = (1, 2, 7, 50, 100)


def cluster(seed: int) -> drawing.Cluster:
    """The cluster of a seed, with wishes; pods to place ask for little else, so that nodes fit."""
    drawn, draw = drawing.cluster(seed), pieces.Draw(1_000_003 * (seed + 1))
    names = [node["metadata"]["name"] for node in drawn.nodes]
    for node in drawn.nodes:
        if draw.chance(0.4):
            taints = [_taint(draw) for _ in range(draw.randint(1, 3))]
            node["spec"]["taints"] = [*node["spec"].get("taints", ()), *taints]
    for pod in drawn.incoming:
        _loosen(draw, pod["spec"])
        _wish(draw, pod["spec"], names, 0.6)
    for pod in drawn.pods:
        _wish(draw, pod["spec"], names, 0.25)
    return drawn


def _taint(draw: pieces.Draw) -> drawing.Raw:
    value = draw.choice(("", "x", "y"))
    return {"key": draw.choice(("down", "team")), "value": value, "effect": "PreferNoSchedule"}


def _loosen(draw: pieces.Draw, spec: dict[str, Any]) -> None:
    """Drop most of what keeps a pod from nodes."""
    if draw.chance(0.85):
        for terms in spec.get("affinity", {}).values():
            terms.pop(_REQUIRED, None)
        spec["affinity"] = {}
    if draw.chance(0.85):
        spec.pop("volumes", None)
        spec.pop("nodeSelector", None)
        spec["containers"] = [{"name": "main", "image": "none"}]
        spec["initContainers"] = []
        spec.pop("resources", None)
        spec.pop("overhead", None)
    constraints = spec.get("topologySpreadConstraints", [])
    if constraints and draw.chance(0.85):
        for constraint in constraints:
            constraint["whenUnsatisfiable"] = "ScheduleAnyway"
            constraint.pop("minDomains", None)
    if draw.chance(0.3):
        spec["tolerations"] = [*spec.get("tolerations", ()), pieces.toleration(draw)]


def _wish(draw: pieces.Draw, spec: dict[str, Any], names: list[str], part: float) -> None:
    """Give a pod preferred terms, each kind in so large a part of all draws."""
    affinity = spec.setdefault("affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw.chance(part):
            affinity.setdefault(kind, {})[_PREFERRED] = [
                {"weight": draw.choice(_WEIGHTS), "podAffinityTerm": pieces.term(draw)}
                for _ in range(draw.randint(1, 3))
            ]
    if draw.chance(part):
        affinity.setdefault("nodeAffinity", {})[_PREFERRED] = [
            {"weight": draw.choice(_WEIGHTS), "preference": _preference(draw, names)}
            for _ in range(draw.randint(1, 3))
        ]


def _preference(draw: pieces.Draw, names: list[str]) -> drawing.Raw:
    """A v1.NodeSelectorTerm; the API server lets no value in here that no label can have."""
    term = pieces.node_term(draw, names)
    for expression in term.get("matchExpressions", ()):
        if expression.get("values") == ["-3"]:
            expression["values"] = ["3"]
    return term
