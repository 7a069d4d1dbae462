"""Tests that Prepare accepts every allocation of the controller (invariant 5), on one machine.

The real allocator decides on what the node publishes, the real Prepare makes it so on a simulated
machine; claims come and go.
"""

import random  # noqa: TID251 - the same every time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from driver import ids, names
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.resources.core import nodes
from driver.resources.dra import claims, slices
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import allocation_result, dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.fakes import gpunode, workloads
from tests.support import snapshots
from tests.support.builders import allocated_claims, objects

WORKLOADS = 1200
NODE = ids.NodeName(allocated_claims.NODE)
OWNER = slice_builder.Owner(NODE, "uid")


@dataclass
class World:
    """One node with its plugin's Prepare, and the controller's allocator."""

    node: gpunode.GpuNode
    process: gpunode.Process = field(init=False)
    view: cluster_state.ClusterState = field(init=False)
    allocator: dra_allocator.Allocator = field(init=False)
    running: list[workloads.Drawn] = field(default_factory=list)
    given: Counter[str] = field(default_factory=Counter)
    by_need: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.process = self.node.process()
        self.allocator = dra_allocator.Allocator(snapshots.DECIDING)
        self.view = cluster_state.ClusterState(names.DRIVER)
        raw = objects.a_node(allocated_claims.NODE)
        raw["status"]["allocatable"] = {"cpu": "9999", "memory": "9999Gi", "pods": "9999"}
        self.view.set_node(NODE, nodes.parse(raw))
        for device_class in workloads.device_classes():
            self.view.set_device_class(device_class.name, device_class)
        for part in published(self.process):
            self.view.set_slice(part.name, part)

    def start(self, drawn: workloads.Drawn) -> None:
        """Allocate and prepare a pod's claims, if they fit."""
        workload = allocator_types.Workload(drawn.pod, drawn.claims)
        answer = self.allocator.decide(self.view, workload)
        if isinstance(answer, allocator_types.Unschedulable):
            self.refused.update(reasons_of(answer))
            return
        allocations = allocation_result.build_allocations(
            self.view, workload, answer, "2026-11-21T09:00:00Z"
        )
        self.view.begin_write(snapshot.InFlight(drawn.pod, answer.node, allocations))
        self.view.end_write(snapshot.InFlight(drawn.pod, answer.node, allocations))
        for claim in drawn.claims:
            self.prepare(claim, allocations[claim.key])
        self.running.append(drawn)

    def prepare(self, claim: claims.Claim, allocation: claims.Allocation) -> None:
        status = {"allocation": claims.render_allocation(allocation)}
        raw = objects.a_claim(claim.name, status=status)
        raw["metadata"]["namespace"] = claim.namespace
        written = claims.parse(raw)
        self.view.set_claim(claim.key, written)
        ref = self.node.allocate(written)
        prepared = self.process.preparer.prepare(ref, gpunode.never)
        assert isinstance(prepared, ports.Prepared), (prepared, claim.spec, allocation)
        self.given.update(kind_of(device.device) for device in prepared.devices)
        requests = {
            way.name: way for request in claim.spec.requests for way in request.alternatives_or_self
        }
        self.by_need.update(
            kind_of(result.device.device)
            for result in allocation.results
            if requests[result.request].device_class == workloads.SLICE
        )

    def end(self, drawn: workloads.Drawn) -> None:
        """The pod goes; its claims are unprepared, then deallocated."""
        self.running.remove(drawn)
        for claim in drawn.claims:
            ref = ports.ClaimRef(claim.namespace, claim.name, claim.uid)
            assert self.process.preparer.unprepare(ref) is None
            self.view.set_claim(claim.key, None)
            del self.node.reader.claims[claim.key]


def published(process: gpunode.Process) -> list[slices.Slice]:
    """The slices of the node, as the API server would hold them."""
    inventory = process.gpus.refresh()
    offered = {gpu.uuid: faces.Offering() for gpu in inventory.all_gpus}
    terms = slice_builder.PublishTerms(names.DRIVER, NODE, "controller", offered)
    pool, refused = slice_builder.build_pool(inventory, terms, {})
    assert not refused
    return [slices.parse(entry) for entry in slice_builder.render(pool, OWNER, 1)]


def kind_of(device: str) -> str:
    for kind in ("mig", "mps", "ts"):
        if f"-{kind}" in device:
            return kind
    return "whole"


def reasons_of(answer: allocator_types.Unschedulable) -> list[str]:
    if answer.blocker is not None:
        return [answer.blocker]
    return [
        str(reason)
        for refusal in answer.rejections
        for reason in (refusal.node_reason, *(reason for reason, _ in refusal.device_reasons))
        if reason is not None
    ]


@pytest.mark.slow
@pytest.mark.timeout(300)  # a minute by itself
def test_prepare_refuses_nothing_that_the_controller_allocated(tmp_path: Path) -> None:
    world = World(gpunode.GpuNode(tmp_path))
    rng = random.Random(6)  # noqa: S311 - a seed, no secret
    for number in range(WORKLOADS):
        world.start(workloads.draw(rng, number))
        while world.running and rng.random() < 0.3:
            world.end(rng.choice(world.running))
    assert min(world.given[kind] for kind in ("whole", "mig", "mps", "ts")) >= 100, world.given
    assert min(world.by_need[kind] for kind in ("mig", "mps", "ts")) >= 10, world.by_need
    expected = {
        "NamespacesApart",
        "SharingDisagrees",
        "ContainerDaemons",
        "ConfigInvalid",
        "IsolationTooWeak",
    }
    assert expected <= set(world.refused), world.refused
    for drawn in [*world.running]:
        world.end(drawn)
    assert world.node.files() == {}
