"""Gangs in tests: nodes with labels, alike members, and what came of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from driver import ids, names
from driver.resources.core import nodes
from driver.resources.dra import claims
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support import snapshots
from tests.support.builders import objects

BLOCK, RACK = "example.com/block", "example.com/rack"
LEVELS = (BLOCK, RACK)
Answer = gang_types.GangPlacement | gang_types.GangUnschedulable


def node(
    name: str, block: str | None = None, rack: str | None = None, cpu: str = "64"
) -> nodes.Node:
    """A node with the labels of its levels."""
    raw = objects.a_node(name)
    result = {BLOCK: block, RACK: rack}
    raw["metadata"]["labels"] |= {key: value for key, value in result.items() if value is not None}
    raw["status"]["allocatable"]["cpu"] = cpu
    return nodes.parse(raw)


def world(
    sizes: Mapping[str, int], existing: Sequence[nodes.Node], *taken: claims.Claim
) -> cluster_state.ClusterState:
    """Nodes, of which those in `sizes` have so many GPUs."""
    state = cluster_state.build(
        names.DRIVER,
        snapshots.caches(
            existing, [objects.a_parsed_slice(key, count) for key, count in sizes.items()], taken
        ),
    )
    assert isinstance(state, cluster_state.ClusterState)
    return state


def racks(
    sizes: Sequence[Sequence[Sequence[int]]], *taken: claims.Claim
) -> cluster_state.ClusterState:
    """Blocks of racks of nodes with so many GPUs: `node-<block>-<rack>-<number>`."""
    result = {
        f"node-{b}-{r}-{n}": (node(f"node-{b}-{r}-{n}", f"b{b}", f"r{r}"), count)
        for b, block in enumerate(sizes)
        for r, rack in enumerate(block)
        for n, count in enumerate(rack)
    }
    existing = [item for item, _ in result.values()]
    return world({name: count for name, (_, count) in result.items()}, existing, *taken)


def member(name: str, gpus: int = 1, cpu: str = "1", **spec: Any) -> allocator_types.Workload:
    """A pod with one claim, or with none."""
    results = [objects.claim(f"{name}-gpu", objects.a_request(count=gpus))] if gpus else []
    entries = [{"name": "gpu", "resourceClaimName": result.name} for result in results]
    asking = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    pod = objects.pod(name, resourceClaims=entries, containers=asking, **spec)
    return allocator_types.Workload(pod, tuple(results))


def alike(count: int, gpus: int = 1) -> list[allocator_types.Workload]:
    """Return members that differ only by name."""
    return [member(f"worker-{index:03}", gpus) for index in range(count)]


def place(
    view: snapshot.Snapshot,
    pods: Sequence[allocator_types.Workload],
    required: str | None = None,
    preferred: str | None = None,
) -> Answer:
    request = topology.Topology(LEVELS, required, preferred)
    return gang_placement.place_gang(pods, view, request, snapshots.DECIDING)


def seated(answer: Answer) -> gang_types.GangPlacement:
    assert isinstance(answer, gang_types.GangPlacement), answer
    return answer


def unseated(answer: Answer) -> gang_types.GangUnschedulable:
    assert isinstance(answer, gang_types.GangUnschedulable), answer.domain
    return answer


def where(answer: Answer) -> dict[str, int]:
    """Return how many members are on each node."""
    return dict(Counter(str(placement.node) for placement in seated(answer).placements))


def domains(view: snapshot.Snapshot, answer: Answer, depth: int) -> set[tuple[str, ...]]:
    """The domains, so many levels deep, that the members are in."""
    labels = [view.nodes[ids.NodeName(name)].labels for name in where(answer)]
    return {tuple(labels[key] for key in LEVELS[:depth]) for labels in labels}
