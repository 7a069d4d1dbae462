"""The one place where the comparison meets our allocator: raw objects in, raw allocations out."""

from collections.abc import Sequence
from typing import Any

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import claims, device_classes, slices, taint_rules
from driver.scheduling.allocator import allocation_result, dra_allocator, settings
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.snapshot import cluster_state
from tests.oracle import differential, scenarios
from tests.support.builders import objects

Raw = dict[str, Any]
STAMP = "2026-11-21T09:00:00Z"


# Without the driver's own filters, and to the end: what the API's rules alone allow.
BARE = settings.Settings(ranking.parse_policies("pack"), step_budget=None)
BOUNDED = settings.Settings(ranking.parse_policies("pack"))


def decide(cluster: scenarios.Cluster, request: Sequence[Raw]) -> differential.Answer:
    """Return where ours puts the claims and what it would write; or why it does not."""
    return _decide(cluster, request, BARE)


def within_budget(cluster: scenarios.Cluster, request: Sequence[Raw]) -> differential.Answer:
    """Return the answer as in a cluster, where a search may end without one."""
    return _decide(cluster, request, BOUNDED)


def _decide(
    cluster: scenarios.Cluster, request: Sequence[Raw], deciding: settings.Settings
) -> differential.Answer:
    view = cluster_state.build("", _caches(cluster))
    expected = tuple(claims.parse(_stated(entry)) for entry in request)
    workload = allocator_types.Workload(
        objects.pod("pod", *(claim.name for claim in expected)), expected
    )
    allocated = dra_allocator.allocate(view, workload, deciding)
    if isinstance(allocated, allocator_types.Unschedulable):
        if allocated.budget_exceeded:
            return differential.GaveUp(allocator_messages.unschedulable(allocated))
        return allocator_messages.unschedulable(allocated)
    written = allocation_result.build_allocations(view, workload, allocated, STAMP)
    return allocated.node, [claims.render_allocation(written[claim.key]) for claim in expected]


def _caches(cluster: scenarios.Cluster) -> cluster_state.CachedObjects:
    return cluster_state.CachedObjects(
        nodes={ids.Key(name): _node(name, labels) for name, labels in cluster.nodes.items()},
        slices={ids.Key(item.name): item for item in map(slices.parse, cluster.slices)},
        classes={
            ids.Key(device_class.name): device_class
            for device_class in map(device_classes.parse, cluster.classes)
        },
        claims={claim.key: claim for claim in map(claims.parse, cluster.allocated)},
        pods={},
        rules={
            ids.Key(taint_rule.name): taint_rule
            for taint_rule in map(taint_rules.parse, cluster.rules)
        },
    )


def _node(name: str, labels: scenarios.Labels) -> nodes.Node:
    raw = objects.a_node(name)
    raw["metadata"]["labels"] = dict(labels)
    return nodes.parse(raw)


def _stated(claim: Raw) -> Raw:
    return {"status": {}, **claim}
