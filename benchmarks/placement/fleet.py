"""GPUs whose MIG instances our allocator gives out: real slices, claims, pods, every face."""

import json
from dataclasses import replace
from typing import NamedTuple

from benchmarks.allocator import fixtures
from benchmarks.placement import stopwatch, streams
from driver import ids, names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices
from driver.scheduling.allocator import allocation_result, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.snapshot import cluster_state

GPUS_A_NODE = 8
_STAMP = "2026-01-01T00:00:00Z"


class Given(NamedTuple):
    """An instance: its claim and pod, its GPU's number in the fleet, its slices as a bit mask."""

    claim: ids.Key
    pod: ids.Key
    gpu: int
    mask: int


class Ours:
    """A fleet of nodes with so many GPUs each, at most the machine's eight."""

    def __init__(self, gpus: int, judge: ranking.PolicyChain, a_node: int = GPUS_A_NODE) -> None:
        self._view = cluster_state.ClusterState(names.DRIVER)
        self._allocator = stopwatch.Stopwatch(
            settings.Settings(judge, device_filter.ControllerRules(names.DRIVER))
        )
        self._a_node = a_node
        self._order: dict[str, int] = {}
        self._made = 0
        for raw in fixtures.classes():
            self._view.set_device_class(raw["metadata"]["name"], device_classes.parse(raw))
        template = fixtures.every_face("controller", streams.MACHINE)
        for number in range(-(-gpus // a_node)):
            self._add(number, json.loads(fixtures.filled(template, number)))

    def _add(self, number: int, raw: list[fixtures.Raw]) -> None:
        node = nodes.parse(fixtures.node(number))
        self._order[node.name] = number
        self._view.set_node(node.name, node)
        for one in _first(raw, self._a_node):
            self._view.set_slice(one["metadata"]["name"], slices.parse(one))

    @property
    def rate(self) -> float:
        """Decisions in a second of processor time."""
        return self._allocator.rate

    def take(self, profile: str) -> Given | None:
        """A claim for a MIG device, and its pod."""
        self._made += 1
        raw = fixtures.claim(f"claim-{self._made}", fixtures.instance(profile))
        pod = pods.parse(fixtures.pod(f"pod-{self._made}", f"claim-{self._made}"))
        workload = allocator_types.Workload(pod, (claims.parse(raw),))
        answer = self._allocator.decide(self._view, workload)
        if isinstance(answer, allocator_types.Unschedulable):
            return None
        (key, made), *_ = allocation_result.build_allocations(
            self._view, workload, answer, _STAMP
        ).items()
        self._view.set_claim(key, replace(workload.open_claims[0], allocation=made))
        self._view.set_pod(pod.key, replace(pod, node=answer.node))
        return Given(key, pod.key, *self._where(answer))

    def leave(self, given: Given) -> None:
        """Its claim and its pod are gone."""
        self._view.set_claim(given.claim, None)
        self._view.set_pod(given.pod, None)

    def _where(self, answer: allocator_types.Placement) -> tuple[int, int]:
        device = answer.assignments[0].result.device
        pool = self._view.pools[device.driver, device.pool]
        face = pool_layout.get_layout(pool).faces[device.device]
        return self._order[answer.node] * self._a_node + face.gpu, face.mask


def _first(raw: list[fixtures.Raw], gpus: int) -> list[fixtures.Raw]:
    """The slices of a node, with the devices of so many GPUs alone."""
    counters = [c["name"] for one in raw for c in one["spec"].get("sharedCounters", [])]
    kept = {*counters[:gpus]}
    for one in raw:
        devices = one["spec"].get("devices", [])
        of_these = [d for d in devices if d["consumesCounters"][0]["counterSet"] in kept]
        if devices:
            one["spec"]["devices"] = of_these
    return raw
