"""Our allocator on a picture of the cluster that every decision changes, as in the controller."""

import json
import random
import time
from dataclasses import replace
from typing import NamedTuple

from benchmarks.allocator import cases, fixtures
from driver import ids, names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices
from driver.scheduling.allocator import allocation_result, dra_allocator, policies, settings
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.snapshot import cluster_state, snapshot

_STAMP = "2026-01-01T00:00:00Z"


def deciding() -> settings.Settings:
    """As the controller decides by default."""
    return settings.Settings(
        ranking.parse_policies(",".join(policies.DEFAULT)),
        device_filter.ControllerRules(names.DRIVER),
    )


def shown(case: cases.Case) -> cluster_state.ClusterState:
    """The case's cluster, its devices in use held by a claim each."""
    view = cluster_state.ClusterState(names.DRIVER)
    for device_class in fixtures.classes():
        view.set_device_class(device_class["metadata"]["name"], device_classes.parse(device_class))
    template = case.shape("controller")
    for number in range(case.nodes):
        name = ids.NodeName(fixtures.node_name(number))
        view.set_node(name, nodes.parse(fixtures.node(number)))
        for raw in json.loads(fixtures.filled(template, number)):
            view.set_slice(raw["metadata"]["name"], slices.parse(raw))
    return view


class Taken(NamedTuple):
    """Milliseconds by the clock, and of processor time: others on the machine hardly touch it."""

    wall: float
    busy: float


class _Watch:
    """Started when it is created."""

    def __init__(self) -> None:
        self._wall, self._busy = time.perf_counter(), time.thread_time()

    def taken(self) -> Taken:
        """Return what has passed since."""
        return Taken(
            1000 * (time.perf_counter() - self._wall), 1000 * (time.thread_time() - self._busy)
        )


class Ours:
    """Decides claim after claim; as many devices are in use after each as at first."""

    def __init__(self, case: cases.Case) -> None:
        self._case = case
        self._view = shown(case)
        self._allocator = dra_allocator.Allocator(deciding())
        self._draw = random.Random(cases.SEED)  # noqa: S311 - no secret
        self._held: list[tuple[claims.Claim, pods.Pod | None]] = []
        self._used = 0
        self._made = 0
        self.refused = 0
        for device in case.taken:
            claim = self._claim(fixtures.gpus(), device)
            self._view.set_claim(claim.key, claim)
            self._hold(claim, None)
        self._most = self._used

    def prepare(self) -> Taken:
        """Compute what the controller does when its caches are filled."""
        watch = _Watch()
        self._allocator.prepare(self._view)
        return watch.taken()

    def run(self, count: int, *, alike: bool = True) -> list[Taken]:
        """Return what each decision took: to decide, and to take it and what is freed in.

        Not `alike`: every claim has another shape, as no two of them have the same request's name.
        """
        return [self._one(alike=alike) for _ in range(count)]

    def refuse(self, asks: fixtures.Raw) -> Taken:
        """Return what it took to refuse a claim that nothing can meet, words and all."""
        claim = self._claim(asks)
        pod = pods.parse(fixtures.pod(f"pod-{self._made}", claim.name))
        watch = _Watch()
        answer = self._allocator.decide(self._view, allocator_types.Workload(pod, (claim,)))
        message = (
            allocator_messages.unschedulable(answer)
            if isinstance(answer, allocator_types.Unschedulable)
            else ""
        )
        taken = watch.taken()
        if not message:
            raise RuntimeError("what cannot be had was had")
        return taken

    def _one(self, *, alike: bool) -> Taken:
        claim, pod = self._workload(alike=alike)
        self._view.set_pod(pod.key, pod)
        self._view.set_claim(claim.key, claim)
        watch = _Watch()
        self._decide(claim, pod)
        return watch.taken()

    def _decide(self, claim: claims.Claim, pod: pods.Pod) -> None:
        workload = allocator_types.Workload(pod, (claim,))
        answer = self._allocator.decide(self._view, workload)
        if isinstance(answer, allocator_types.Unschedulable):
            self.refused += 1
            return
        allocations = allocation_result.build_allocations(self._view, workload, answer, _STAMP)
        decision = snapshot.InFlight(pod, answer.node, allocations)
        self._view.begin_write(decision)
        used = claims.Consumer("", "pods", pod.name, pod.uid)
        written = replace(claim, version="2", allocation=allocations[claim.key], consumers=(used,))
        self._view.set_claim(claim.key, written)
        self._view.end_write(decision)
        self._free(len(answer.assignments))
        self._hold(written, pod)

    def _hold(self, claim: claims.Claim, pod: pods.Pod | None) -> None:
        self._held.append((claim, pod))
        self._used += len(claim.allocation.results) if claim.allocation else 0

    def _free(self, count: int) -> None:
        """Let claims drawn by lot go, until so many more devices may be taken."""
        while self._used + count > self._most:
            drawn = self._draw.randrange(len(self._held))
            self._held[drawn], self._held[-1] = self._held[-1], self._held[drawn]
            claim, pod = self._held.pop()
            self._used -= len(claim.allocation.results) if claim.allocation else 0
            self._view.set_claim(claim.key, None)
            if pod is not None:
                self._view.set_pod(pod.key, None)

    def _workload(self, *, alike: bool) -> tuple[claims.Claim, pods.Pod]:
        asks = self._case.asks if alike else fixtures.renamed(self._case.asks, f"gpu-{self._made}")
        claim = self._claim(asks)
        return claim, pods.parse(fixtures.pod(f"pod-{self._made}", claim.name))

    def _claim(self, asks: fixtures.Raw, device: cases.Device | None = None) -> claims.Claim:
        self._made += 1
        raw = fixtures.claim(f"claim-{self._made}", asks)
        return claims.parse(fixtures.allocated(raw, device, device[1]) if device else raw)
