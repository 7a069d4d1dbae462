"""Small clusters with pods on them and one that is to come, and all sets of pods that would do."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from driver import ids
from driver.resources.core import nodes, pods
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.results import node_result
from driver.scheduling.explain import cost, holders, step_budget
from driver.scheduling.snapshot import cluster_state
from tests.properties import drawing
from tests.support import snapshots
from tests.support.builders import objects


@dataclass
class World:
    """A cluster with pods that were placed one after the other, and one that is to come."""

    published: list[drawing.Raw]
    asked: allocator_types.Workload
    known: dict[ids.Key, pods.Pod] = field(default_factory=dict)
    held: dict[ids.Key, claims.Claim] = field(default_factory=dict)

    @property
    def view(self) -> cluster_state.ClusterState:
        return self.without(())

    def people(self, view: cluster_state.ClusterState) -> holders.HolderIndex:
        return holders.HolderIndex(view, self.held.get, self.known.get)

    def without(self, gone: Sequence[holders.DeviceHolder]) -> cluster_state.ClusterState:
        """The picture of what there is but for these pods and their claims, made at once."""
        state = drawing.fresh(self.published)
        free, keys = holders.freed_claims(gone), {device_holder.key for device_holder in gone}
        for claim in self.held.values():
            state.set_claim(claim.key, None if claim.key in free else claim)
        for pod in self.known.values():
            state.set_pod(pod.key, None if pod.key in keys else pod)
        return state


@st.composite
def newcomers(draw: st.DrawFn) -> allocator_types.Workload:
    """One that uses all of the language, or one that asks a few devices."""
    if draw(st.booleans()):
        return draw(drawing.workloads(99))
    body = {**draw(drawing.bodies()), "count": draw(st.integers(1, 3))}
    body.pop("adminAccess", None)
    claim = objects.claim("claim-99", {"name": "r", "exactly": body})
    return allocator_types.Workload(
        a_pod("pod-99", draw(st.sampled_from("1126")), claim.name), (claim,)
    )


def a_pod(name: str, cpu: str, *called: str, **spec: Any) -> pods.Pod:
    asking = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    entries = [{"name": name, "resourceClaimName": name} for name in called]
    return objects.pod(name, resourceClaims=entries, containers=asking, **spec)


@st.composite
def populated(draw: st.DrawFn) -> World:
    """Some of the workloads that come find a place; some have a claim in common, some none."""
    world = World(draw(drawing.published()), draw(newcomers()))
    for number in range(draw(st.integers(0, 2))):
        node = draw(st.sampled_from(drawing.NODES))
        ports = [{"containerPort": 80, "hostPort": 80}] if draw(st.booleans()) else []
        asking = {"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": ports}
        pod = objects.pod(f"plain-{number}", nodeName=node, containers=[asking], resourceClaims=[])
        world.known[pod.key] = pod
    for number in range(draw(st.integers(1, 9))):
        body: drawing.Raw = {"deviceClassName": snapshots.ANY, "count": 1}
        if draw(st.integers(0, 2)) == 0:
            body = {**draw(drawing.bodies()), "count": draw(st.integers(1, 2))}
        come(draw, world, objects.claim(f"claim-{number}", {"name": "r", "exactly": body}), number)
    return world


def come(draw: st.DrawFn, world: World, claim: claims.Claim, number: int) -> None:
    """A pod, or two with one claim, find a place or do not."""
    view, pod = world.view, a_pod(f"pod-{number}", "1", claim.name)
    answer = dra_allocator.allocate(
        view, allocator_types.Workload(pod, (claim,)), snapshots.DECIDING
    )
    if not isinstance(answer, allocator_types.Placement):
        return
    users = [pod]
    if draw(st.integers(0, 5)) == 0:
        users.append(a_pod(f"also-{number}", "1", claim.name, nodeName=answer.node))
    (allocation,) = allocation_result.build_allocations(
        view, allocator_types.Workload(pod, (claim,)), answer, ""
    ).values()
    by = tuple(claims.Consumer("", "pods", user.name, user.uid) for user in users)
    if draw(st.integers(0, 9)) == 0:
        by = (*by, claims.Consumer("example.com", "things", "x", "y"))
    world.held[claim.key] = replace(claim, allocation=allocation, consumers=by)
    world.known |= {user.key: user for user in users}


@st.composite
def fragmented(draw: st.DrawFn) -> World:
    """Some GPUs of each node are in use, and what comes asks several of one node."""
    body: drawing.Raw = {"deviceClassName": snapshots.ANY}
    request = {"name": "gpu", "exactly": {**body, "count": 1}}
    many = {"name": "gpu", "exactly": {**body, "count": draw(st.integers(2, 3))}}
    requested = objects.claim("claim-99", many)
    newcomer = a_pod("pod-99", draw(st.sampled_from("14")), requested.name)
    published = [objects.a_slice(node, draw(st.integers(2, 4))) for node in drawing.NODES]
    world = World(published, allocator_types.Workload(newcomer, (requested,)))
    places = [
        (entry["spec"]["nodeName"], device["name"])
        for entry in published
        for device in entry["spec"]["devices"]
    ]
    used = draw(st.sets(st.sampled_from(places), min_size=2, max_size=7))
    for number, (node, device) in enumerate(sorted(used)):
        pod = a_pod(f"pod-{number}", draw(st.sampled_from("12")), f"claim-{number}", nodeName=node)
        reserved = [{"resource": "pods", "name": pod.name, "uid": pod.uid}]
        status = objects.allocated(node, device, reserved=reserved)
        claim = objects.claim(f"claim-{number}", request, status=status)
        world.known[pod.key], world.held[claim.key] = pod, claim
    return world


@st.composite
def movable(draw: st.DrawFn) -> World:
    """A cluster in which some pods opted in, and all are bound."""
    world = draw(st.one_of(populated(), fragmented(), fragmented()))
    view = world.view
    bound = {
        node_holder.key: node_holder.node
        for name in view.nodes
        for node_holder in world.people(view).node_holders(name)
    }
    for key, node in bound.items():
        owner = pods.Owner("ReplicaSet", "web", "u") if draw(st.integers(0, 5)) else None
        opted = bool(draw(st.integers(0, 4)))
        world.known[key] = replace(world.known[key], node=node, owner=owner, movable=opted)
    return world


def fits(
    view: cluster_state.ClusterState, workload: allocator_types.Workload, node: nodes.Node
) -> bool:
    workload_query = step_budget.workload_query(view, workload, snapshots.DECIDING)
    return workload_query is not None and isinstance(
        workload_query.evaluate(view, node), node_result.Fit
    )


def every_way(
    world: World, node: nodes.Node, device_holders: Sequence[holders.DeviceHolder]
) -> list[tuple[cost.Cost, tuple[holders.DeviceHolder, ...]]]:
    """The sets that do on a node and hold no other one, by price: found by trying all."""
    price = cost.FewestPods(world.view)
    results: list[set[str]] = []
    ranked: list[tuple[cost.Cost, tuple[holders.DeviceHolder, ...]]] = []
    for size in range(len(device_holders) + 1):
        for gone in itertools.combinations(device_holders, size):
            names = {str(device_holder.key) for device_holder in gone}
            if any(result <= names for result in results):
                continue
            if fits(world.without(gone), world.asked, node):
                results.append(names)
                ranked.append((price.cost(gone), gone))
    return sorted(ranked, key=lambda values: (values[0], [each.key for each in values[1]]))
