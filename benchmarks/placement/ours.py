"""The trace through our allocator: real claims, slices and pods, on a picture kept by changes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.placement import openb
from driver import ids, names
from driver.controller import picture
from driver.controller.allocation import allocate, assemble, filters, outcome, ranking, settings
from driver.controller.allocation.policies import base, mix
from driver.resources import claims, classes, nodes, pods, slices

Raw = dict[str, Any]
_MPS = "gpu-mps.ration.dev"
_STAMP = "2026-01-01T00:00:00Z"
_TAINT = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}
_OF = f'device.driver == "{names.DRIVER}" && device.attributes["{names.DRIVER}"]'


def usual(trace: openb.Trace) -> mix.Mix:
    """What the trace usually asks, as our policies see it."""
    return mix.of((_demand(shape), part) for shape, part in openb.usual(trace))


def _demand(shape: openb.Pod) -> mix.Demand:
    asked = base.MPS if shape.milli < openb.FULL else base.WHOLE
    mode = asked if shape.gpus else base.IDLE
    return mix.Demand(mode, shape.gpus, shape.milli, shape.cpu, frozenset(shape.models))


class Fleet:
    """The trace's nodes; every GPU is published whole and as an MPS share of a thousand parts."""

    def __init__(self, trace: openb.Trace, judge: ranking.Ranking) -> None:
        self._view = picture.Picture(names.DRIVER)
        self._allocator = allocate.Allocator(settings.Settings(judge, filters.Rules(names.DRIVER)))
        self._templates: dict[openb.Pod, tuple[pods.Pod, claims.Claim | None]] = {}
        self._made = 0
        for raw in (_class(names.CLASS_GPU, "gpu"), _class(_MPS, "gpu-share")):
            self._view.put_class(raw["metadata"]["name"], classes.parse(raw))
        for node in trace.nodes:
            name = ids.NodeName(node.name)
            self._view.put_node(name, nodes.parse(_node(node)))
            for raw in _slices(node):
                self._view.put_slice(raw["metadata"]["name"], slices.parse(raw))

    def place(self, pod: openb.Pod) -> bool:
        """Whether a pod found a place; it stays there."""
        self._made += 1
        made, claim = self._workload(pod)
        workload = outcome.Workload(made, (claim,) if claim else ())
        answer = self._allocator.decide(self._view, workload)
        if isinstance(answer, outcome.NoFit):
            return False
        found = assemble.allocations(self._view, workload, answer, _STAMP)
        if claim is not None:
            used = claims.Consumer("", "pods", made.name, made.uid)
            written = replace(claim, allocation=found[claim.key], consumers=(used,))
            self._view.put_claim(claim.key, written)
        self._view.put_pod(made.key, replace(made, node=answer.node))
        return True

    def _workload(self, pod: openb.Pod) -> tuple[pods.Pod, claims.Claim | None]:
        if pod not in self._templates:
            parsed = claims.parse(_claim(pod)) if pod.gpus else None
            self._templates[pod] = pods.parse(_pod(pod)), parsed
        made, claim = self._templates[pod]
        name = f"pod-{self._made}"
        made = replace(made, name=name, uid=ids.PodUid(name))
        return made, claim and replace(claim, name=name, uid=ids.ClaimUid(name))


def replay(trace: openb.Trace, arriving: Sequence[openb.Pod], judge: ranking.Ranking) -> list[int]:
    """GPU thousandths in use after each arrival."""
    fleet = Fleet(trace, judge)
    used, out = 0, []
    for pod in arriving:
        used += pod.demand if fleet.place(pod) else 0
        out.append(used)
    return out


def _meta(name: str, **more: str) -> Raw:
    return {"name": name, "uid": name, "resourceVersion": "1", **more}


def _class(name: str, kind: str) -> Raw:
    return {
        "metadata": _meta(name),
        "spec": {"selectors": [{"cel": {"expression": f'{_OF}.type == "{kind}"'}}]},
    }


def _node(node: openb.Node) -> Raw:
    room = {"cpu": f"{node.cpu}m", "memory": f"{node.memory}Mi", "pods": "100000"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": _meta(node.name),
        "spec": {},
        "status": {"allocatable": room, "conditions": ready},
    }


def _slices(node: openb.Node) -> list[Raw]:
    pool = {"name": node.name, "generation": 1, "resourceSliceCount": 2}
    shared = {"driver": names.DRIVER, "nodeName": node.name, "pool": pool}
    one = {"gpu": {"value": "1"}}
    sets = [{"name": f"gpu-{at}", "counters": one} for at in range(node.gpus)]
    devices = [
        device
        for at in range(node.gpus)
        for device in (_device(node, at, "gpu", {}), _device(node, at, "gpu-share", _SHARE))
    ]
    return [
        {"metadata": _meta(f"{node.name}-0"), "spec": {**shared, "sharedCounters": sets}},
        {"metadata": _meta(f"{node.name}-1"), "spec": {**shared, "devices": devices}},
    ]


_POLICY = {"default": "1", "validRange": {"min": "1", "max": "1000", "step": "1"}}
_SHARE: Mapping[str, Any] = {
    "allowMultipleAllocations": True,
    "capacity": {"compute": {"value": "1000", "requestPolicy": _POLICY}},
}


def _device(node: openb.Node, at: int, kind: str, more: Mapping[str, Any]) -> Raw:
    told = {"type": kind, "productName": node.model, "uuid": f"GPU-{node.name}-{at}"}
    if more:
        told["sharing"] = names.SHARING_MPS
    use = {"counterSet": f"gpu-{at}", "counters": {"gpu": {"value": "1"}}}
    return {
        "name": f"gpu-{at}" if kind == "gpu" else f"gpu-{at}-mps",
        "attributes": {name: {"string": text} for name, text in told.items()},
        "taints": [_TAINT],
        "consumesCounters": [use],
        **more,
    }


def _claim(pod: openb.Pod) -> Raw:
    shared = pod.milli < openb.FULL
    asked: Raw = {"deviceClassName": _MPS if shared else names.CLASS_GPU}
    if shared:
        asked["capacity"] = {"requests": {"compute": str(pod.milli)}}
    else:
        asked["count"] = pod.gpus
    if pod.models:
        any_of = " || ".join(f'{_OF}.productName == "{one}"' for one in pod.models)
        asked["selectors"] = [{"cel": {"expression": any_of}}]
    requests = [{"name": "gpu", "exactly": asked}]
    return {
        "metadata": _meta("claim", namespace="default"),
        "spec": {"devices": {"requests": requests}},
    }


def _pod(pod: openb.Pod) -> Raw:
    asks = {"cpu": f"{pod.cpu}m", "memory": f"{pod.memory}Mi"}
    return {
        "metadata": _meta("pod", namespace="default"),
        "spec": {"containers": [{"name": "c", "resources": {"requests": asks}}]},
        "status": {"phase": "Pending"},
    }
