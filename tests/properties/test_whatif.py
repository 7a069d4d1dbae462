"""Which pods would have to go: held against trying every set of pods on small clusters."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids
from driver.controller import picture
from driver.controller.allocation import allocate, answers, outcome
from driver.controller.allocation.whatif import asking, freeing, prices, tenants
from driver.resources import claims, nodes, pods
from tests import objects, worlds
from tests.properties import drawing

ENOUGH = 1_000_000


@dataclass
class World:
    """A cluster with pods that were placed one after the other, and one that is to come."""

    published: list[drawing.Raw]
    asked: outcome.Workload
    known: dict[ids.Key, pods.Pod] = field(default_factory=dict)
    held: dict[ids.Key, claims.Claim] = field(default_factory=dict)

    @property
    def view(self) -> picture.Picture:
        return self.without(())

    def people(self, view: picture.Picture) -> tenants.Tenants:
        return tenants.Tenants(view, self.held.get, self.known.get)

    def without(self, gone: Sequence[tenants.Tenant]) -> picture.Picture:
        """The picture of what there is but for these pods and their claims, made at once."""
        made = drawing.fresh(self.published)
        free, keys = tenants.freed(gone), {one.key for one in gone}
        for claim in self.held.values():
            made.put_claim(claim.key, None if claim.key in free else claim)
        for pod in self.known.values():
            made.put_pod(pod.key, None if pod.key in keys else pod)
        return made


@st.composite
def newcomers(draw: st.DrawFn) -> outcome.Workload:
    """One that uses all of the language, or one that asks a few devices."""
    if draw(st.booleans()):
        return draw(drawing.workloads(99))
    body = {**draw(drawing.bodies()), "count": draw(st.integers(1, 3))}
    body.pop("adminAccess", None)
    claim = objects.claim("claim-99", {"name": "r", "exactly": body})
    return outcome.Workload(a_pod("pod-99", draw(st.sampled_from("1126")), claim.name), (claim,))


def a_pod(name: str, cpu: str, *called: str, **spec: Any) -> pods.Pod:
    asking = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    entries = [{"name": one, "resourceClaimName": one} for one in called]
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
        body: drawing.Raw = {"deviceClassName": worlds.ANY, "count": 1}
        if draw(st.integers(0, 2)) == 0:
            body = {**draw(drawing.bodies()), "count": draw(st.integers(1, 2))}
        come(draw, world, objects.claim(f"claim-{number}", {"name": "r", "exactly": body}), number)
    return world


def come(draw: st.DrawFn, world: World, claim: claims.Claim, number: int) -> None:
    """A pod, or two with one claim, find a place or do not."""
    view, pod = world.view, a_pod(f"pod-{number}", "1", claim.name)
    answer = allocate.allocate(view, outcome.Workload(pod, (claim,)), worlds.DECIDING)
    if not isinstance(answer, outcome.Placement):
        return
    users = [pod]
    if draw(st.integers(0, 5)) == 0:
        users.append(a_pod(f"also-{number}", "1", claim.name, nodeName=answer.node))
    made = drawing.written(view, outcome.Workload(pod, (claim,)), answer).claims[0]
    by = tuple(claims.Consumer("", "pods", one.name, one.uid) for one in users)
    if draw(st.integers(0, 9)) == 0:
        by = (*by, claims.Consumer("example.com", "things", "x", "y"))
    world.held[claim.key] = replace(made, consumers=by)
    world.known |= {one.key: one for one in users}


def fits(view: picture.Picture, asked: outcome.Workload, node: nodes.Node) -> bool:
    found = asking.of(view, asked, worlds.DECIDING)
    return found is not None and isinstance(found.answer(view, node), answers.Fit)


def every_way(world: World, node: nodes.Node) -> list[tuple[object, ...]]:
    """The sets that do on a node and hold no other one, by price: found by trying all."""
    view = world.view
    there = world.people(view).of(node.name)
    price = prices.Fewest(view)
    found: list[set[str]] = []
    ranked: list[tuple[object, ...]] = []
    for size in range(len(there) + 1):
        for gone in itertools.combinations(there, size):
            names = {one.key for one in gone}
            if any(one <= names for one in found):
                continue
            if fits(world.without(gone), world.asked, node):
                found.append(set(names))
                ranked.append((price.of(gone), tuple(one.key for one in gone)))
    return sorted(ranked)


def search(world: World, view: picture.Picture, most: int = ENOUGH) -> freeing.Search | None:
    asked = asking.of(view, world.asked, worlds.DECIDING)
    if asked is None:
        return None
    return freeing.Search(view, asked, prices.Fewest(view), asking.Meter(most))


@settings(max_examples=150, deadline=None)
@given(populated())
def test_the_sets_of_pods_that_would_do_are_those_that_trying_all_finds(world: World) -> None:
    view = world.view
    before, mark = drawing.shown(view), view.mark
    for node in view.nodes.values():
        looked = search(world, view)
        assert looked is not None
        there = world.people(view).of(node.name)
        found = [(one.cost, one.names) for one in freeing.ways(looked, node, there)]
        assert found == every_way(world, node)
    assert (drawing.shown(view), view.mark) == (before, mark)
