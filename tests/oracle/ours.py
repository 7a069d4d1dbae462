"""The one place where the comparison meets our allocator: raw objects in, raw allocations out."""

from collections.abc import Sequence
from typing import Any

from driver import ids, names
from driver.controller import view
from driver.controller.allocation import allocate, assemble, outcome, policies
from driver.resources import claims, classes, nodes, slices, taint_rules
from tests import objects
from tests.oracle import scenarios

Raw = dict[str, Any]
STAMP = "2026-11-21T09:00:00Z"


def decide(cluster: scenarios.Cluster, asked: Sequence[Raw]) -> tuple[str, list[Raw]] | str:
    """Where ours puts the claims and what it would write; or why it does not."""
    driver = next((one["spec"]["driver"] for one in cluster.slices), names.DRIVER)
    picture = view.build(driver, _caches(cluster))
    wanted = tuple(claims.parse(_stated(one)) for one in asked)
    workload = outcome.Workload(objects.pod("pod", *(one.name for one in wanted)), wanted)
    found = allocate.allocate(picture, workload, policies.POLICIES["pack"])
    if isinstance(found, outcome.NoFit):
        return f"{found.blocker or ''} {found.detail} {[one.node for one in found.nodes]}".strip()
    written = assemble.allocations(picture, workload, found, STAMP)
    return found.node, [claims.render_allocation(written[one.key]) for one in wanted]


def _caches(cluster: scenarios.Cluster) -> view.Caches:
    return view.Caches(
        nodes={ids.Key(name): _node(name, labels) for name, labels in cluster.nodes.items()},
        slices={ids.Key(one.name): one for one in map(_left_to_us, cluster.slices)},
        classes={ids.Key(one.name): one for one in map(classes.parse, cluster.classes)},
        claims={one.key: one for one in map(claims.parse, cluster.allocated)},
        pods={},
        rules={ids.Key(one.name): one for one in map(taint_rules.parse, cluster.rules)},
    )


def _left_to_us(one: Raw) -> slices.Slice:
    """The slice with the taint by which kube-scheduler leaves devices to us (D2).

    The reference is not shown it: it would answer no to everything.
    """
    devices = [
        {**device, "taints": [*device.get("taints", ()), objects.ALLOCATOR_TAINT]}
        for device in one["spec"].get("devices", ())
    ]
    return slices.parse({**one, "spec": {**one["spec"], "devices": devices}})


def _node(name: str, labels: scenarios.Labels) -> nodes.Node:
    raw = objects.a_node(name)
    raw["metadata"]["labels"] = dict(labels)
    return nodes.parse(raw)


def _stated(claim: Raw) -> Raw:
    return {"status": {}, **claim}
