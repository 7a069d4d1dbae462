"""Pods and claims that have gone leave nothing behind, however many there were."""

from collections import Counter
from typing import Any

import pytest

from driver import names
from tests.fakes import deciding
from tests.support import retained
from tests.support.builders import objects, scheduler_objects
from tests.support.scenarios import scheduled_pods

HOST = "kubernetes.io/hostname"
PODS, SAMPLE, NODES = 600, 50, 300
"""More pods than most caches hold; those are cleared, or lose what was used first."""
BOUNDED = {"ChangeLog", "Reporter"}
"""Classes with bounds that no test here fills: 32,768 changes, 4,096 conditions."""
SPREAD = {
    "maxSkew": 9,
    "topologyKey": HOST,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


class Fleet:
    """A node of two GPUs, and pods with labels of their own, as a Job's are."""

    def __init__(self, gpus: int, *, nominated: bool = False, **spec: Any) -> None:
        self.world = deciding.World(2)
        self._gpus = gpus
        self._nominated = nominated
        self._spec = spec
        self._made = 0
        self._previous = ""

    def peaks(self, count: int) -> Counter[str]:
        """Have pods come, wait or run, and go; return the most that each class held meanwhile."""
        most = Counter[str]()
        for number in range(count):
            self._made += 1
            self._arrive(f"{self._made}")
            self._leave(self._previous)
            self._previous = f"{self._made}"
            if number % SAMPLE == 0:
                most |= _held(self.world)
        return most

    def _arrive(self, number: str) -> None:
        world, name, claim = self.world, f"pod-{number}", f"claim-{number}"
        entry = {"name": "gpu", "resourceClaimName": claim}
        pod = objects.a_pod(name, resourceClaims=[entry], **self._spec)
        pod["metadata"]["labels"] = {"app": "web", "job-name": name}
        world.add(objects.a_claim(claim, objects.a_request("gpu", self._gpus)), pod)
        world.settle()
        if node := world.node_of(claim):
            if self._nominated:
                world.change_pod(name, nominatedNodeName=node)
                world.settle()
            world.scheduled(name, node, claim)
            world.change_pod(name, phase="Running", nominatedNodeName=None)
            world.settle()
        assert (world.waiting_for(name) is None) is bool(node)

    def _leave(self, number: str) -> None:
        world = self.world
        if number:
            world.remove_pod(f"pod-{number}")
            _delete_claim(world, f"claim-{number}")
            world.settle()


@pytest.mark.parametrize(
    "fleet",
    [
        pytest.param(Fleet(1), id="placed"),
        pytest.param(Fleet(1, nominated=True), id="placed and nominated"),
        pytest.param(Fleet(1, topologySpreadConstraints=[SPREAD]), id="placed with a spread"),
        pytest.param(Fleet(9), id="never placed"),
        pytest.param(Fleet(9, topologySpreadConstraints=[SPREAD]), id="never placed with a spread"),
    ],
)
def test_a_pod_that_has_gone_leaves_nothing(fleet: Fleet) -> None:
    first, second = fleet.peaks(PODS), fleet.peaks(PODS)
    assert _grown(first, second, PODS // 2) == {}


def test_a_pod_that_was_evicted_leaves_nothing() -> None:
    world = deciding.World(1)
    sizes = []
    for turn in range(4):
        low, high = f"low-{turn}", f"high-{turn}"
        world.add(*scheduler_objects.a_pod(low))
        scheduled_pods.runs(world, low)
        world.add(*scheduler_objects.a_pod(high, 1000))
        world.settle()
        world.settle()
        assert world.server.evicted[-1] == low
        scheduled_pods.leaves(world, low)
        assert scheduled_pods.has(world, high)
        world.settle(2.0)
        scheduled_pods.leaves(world, high)
        world.settle(10.0)
        sizes.append(retained.entries((world.decider,), (world.stores,))["EvictionRequester"])
    assert sizes == sizes[:1] * 4


def test_an_idle_workload_that_has_gone_leaves_nothing() -> None:
    world = deciding.World(1)
    world.add(scheduler_objects.a_queue("a", idleReclaim={"after": "1m", "action": "report"}))
    sizes = []
    for turn in range(4):
        name = f"lazy-{turn}"
        world.add(*scheduler_objects.a_pod(name, queue="a"))
        scheduled_pods.runs(world, name)
        world.settle(1801.0)
        scheduled_pods.works(world, name, "2026-11-21T09:00:00Z")
        world.settle()
        assert len(scheduled_pods.told(world, "Idle")) == turn + 1
        sizes.append(retained.entries((world.decider,), (world.stores,))["IdleReclaim"])
        scheduled_pods.leaves(world, name)
        world.settle()
    assert sizes == sizes[:1] * 4


def test_a_node_that_has_gone_leaves_nothing() -> None:
    world = deciding.World(1)
    first, second = _peaks(world, 0), _peaks(world, NODES)
    assert _grown(first, second, NODES // 2) == {}


def _peaks(world: deciding.World, start: int) -> Counter[str]:
    """Have nodes come, run a pod each, and go; return the most that each class held meanwhile."""
    most = Counter[str]()
    for number in range(start, start + NODES):
        name, pod = f"spot-{number}", f"pod-{number}"
        node = world.put_node(name)
        gpus = world.server.newer(objects.a_slice(name, 8))
        world.stores.slices.apply(gpus)
        world.add(*scheduler_objects.a_pod(pod, spec={"nodeSelector": {HOST: name}}))
        scheduled_pods.runs(world, pod)
        assert world.node_of(f"{pod}-gpu") == name
        scheduled_pods.leaves(world, pod)
        _delete_claim(world, f"{pod}-gpu")
        world.stores.slices.apply(world.server.newer(gpus), deleted=True)
        world.stores.nodes.apply(world.server.newer(node), deleted=True)
        del world.server.nodes[name]
        world.settle()
        if number % 20 == 0:
            most |= _held(world)
    return most


@pytest.mark.parametrize("gpus", [1, 9])
def test_a_gang_that_has_gone_leaves_nothing(gpus: int) -> None:
    world = deciding.World(2)
    first, second = (_gang_peaks(world, start, gpus) for start in (0, NODES))
    assert _grown(first, second, NODES // 2) == {}


def _gang_peaks(world: deciding.World, start: int, gpus: int) -> Counter[str]:
    """Have gangs of two come, wait or run, and go; return the most that each class held."""
    most = Counter[str]()
    for number in range(start, start + NODES):
        members = [f"gang-{number}-{index}" for index in range(2)]
        for name in members:
            pod = objects.a_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
            pod["metadata"]["labels"] = {names.GANG_LABEL: f"gang-{number}"}
            pod["metadata"]["annotations"] = {names.GANG_SIZE: "2"}
            world.add(objects.a_claim(name, objects.a_request("gpu", gpus)), pod)
        world.settle()
        assert [world.node_of(name) for name in members] == ["node-0" if gpus == 1 else None] * 2
        for name in members if gpus == 1 else ():
            world.scheduled(name, "node-0", name)
        world.settle()
        assert [world.waiting_for(name) is None for name in members] == [gpus == 1] * 2
        for name in members:
            world.remove_pod(name)
            _delete_claim(world, name)
        world.settle()
        if number % 20 == 0:
            most |= _held(world)
    return most


def _held(world: deciding.World) -> Counter[str]:
    """Return what the controller holds, by class."""
    roots = world.decider, world.stores, world.items, world.saying
    return retained.entries(roots, (world.server, world.told, world.clock, world.registry))


def _grown(first: Counter[str], second: Counter[str], least: int) -> dict[str, int]:
    """Return by how much unbounded classes grew, where that is at least so much."""
    return {
        name: count - first[name]
        for name, count in second.items()
        if count - first[name] >= least and name not in BOUNDED
    }


def _delete_claim(world: deciding.World, name: str) -> None:
    claim = world.server.newer(world.server.claims.pop(f"default/{name}"))
    world.stores.claims.apply(claim, deleted=True)
