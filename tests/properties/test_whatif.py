"""Which pods would have to go: held against trying every set of pods on small clusters."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids
from driver.controller import picture
from driver.controller.allocation import allocate, answers, assemble, outcome
from driver.controller.allocation import settings as deciding
from driver.controller.allocation.whatif import (
    absence,
    asking,
    defrag,
    freeing,
    nearest,
    prices,
    tenants,
)
from driver.resources import claims, nodes, pods
from tests import objects, worlds
from tests.properties import drawing

ENOUGH = 1_000_000
NO_RULES = deciding.NoRules()


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
    (made,) = assemble.allocations(view, outcome.Workload(pod, (claim,)), answer, "").values()
    by = tuple(claims.Consumer("", "pods", one.name, one.uid) for one in users)
    if draw(st.integers(0, 9)) == 0:
        by = (*by, claims.Consumer("example.com", "things", "x", "y"))
    world.held[claim.key] = replace(claim, allocation=made, consumers=by)
    world.known |= {one.key: one for one in users}


def fits(view: picture.Picture, asked: outcome.Workload, node: nodes.Node) -> bool:
    found = asking.of(view, asked, worlds.DECIDING)
    return found is not None and isinstance(found.answer(view, node), answers.Fit)


def every_way(
    world: World, node: nodes.Node, there: Sequence[tenants.Tenant]
) -> list[tuple[prices.Cost, tuple[tenants.Tenant, ...]]]:
    """The sets that do on a node and hold no other one, by price: found by trying all."""
    price = prices.Fewest(world.view)
    found: list[set[str]] = []
    ranked: list[tuple[prices.Cost, tuple[tenants.Tenant, ...]]] = []
    for size in range(len(there) + 1):
        for gone in itertools.combinations(there, size):
            names = {str(one.key) for one in gone}
            if any(one <= names for one in found):
                continue
            if fits(world.without(gone), world.asked, node):
                found.append(names)
                ranked.append((price.of(gone), gone))
    return sorted(ranked, key=lambda one: (one[0], [each.key for each in one[1]]))


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
        found = [(one.cost, one.leaving) for one in freeing.ways(looked, node, there)]
        assert found == every_way(world, node, there)
    assert (drawing.shown(view), view.mark) == (before, mark)


@settings(max_examples=100, deadline=None)
@given(populated(), st.integers(1, 400))
def test_whenever_the_steps_end_what_is_told_does(world: World, most: int) -> None:
    view = world.view
    for node in view.nodes.values():
        looked = search(world, view, most)
        assert looked is not None
        there = world.people(view).of(node.name)
        every = every_way(world, node, there)
        for at, one in enumerate(freeing.ways(looked, node, there)):
            assert fits(world.without(one.leaving), world.asked, node)
            assert not one.least or (one.cost, one.leaving) == every[at]


@settings(max_examples=150, deadline=None)
@given(populated(), st.data())
def test_a_view_without_pods_is_the_picture_without_them(world: World, data: st.DataObject) -> None:
    view = world.view
    before = drawing.shown(view)
    everyone = {one.key: one for name in view.nodes for one in world.people(view).of(name)}
    gone = data.draw(st.sets(st.sampled_from([*everyone]))) if everyone else set()
    leaving = [everyone[key] for key in sorted(gone)]
    without = world.without(leaving)
    found = absence.Absence(view, leaving)
    assert drawing.shown(found) == drawing.shown(without)
    assert all(found.pods_on(name) == without.pods_on(name) for name in view.nodes)
    assert drawing.shown(view) == before


@settings(max_examples=50, deadline=None)
@given(populated())
def test_a_bare_view_is_the_picture_of_a_cluster_in_which_nothing_runs(world: World) -> None:
    assert drawing.shown(absence.Bare(world.view)) == drawing.shown(drawing.fresh(world.published))


@settings(max_examples=75, deadline=None)
@given(populated(), st.sampled_from([60, 1000, 100_000]))
def test_what_is_told_of_the_nearest_fit_is_true(world: World, most: int) -> None:
    view = world.view
    answer = allocate.allocate(view, world.asked, worlds.DECIDING)
    if isinstance(answer, outcome.Placement):
        return
    people = world.people(view)
    found = nearest.of(view, world.asked, answer, people, worlds.DECIDING, most)
    if found is None:
        return
    bare = drawing.fresh(world.published)
    if found.ever is False:
        assert not any(fits(bare, world.asked, node) for node in bare.nodes.values())
    if found.leaving:
        leaving = [one for one in people.of(found.node) if one.key in found.leaving]
        assert fits(world.without(leaving), world.asked, view.nodes[found.node])
    if found.leaving and found.least:
        every = [
            cost
            for node in view.nodes.values()
            for cost, _ in every_way(world, node, people.of(node.name))
        ]
        assert prices.Fewest(view).of(leaving) == min(every)


@st.composite
def fragmented(draw: st.DrawFn) -> World:
    """Some GPUs of each node are in use, and what comes asks several of one node."""
    body: drawing.Raw = {"deviceClassName": worlds.ANY}
    request = {"name": "gpu", "exactly": {**body, "count": 1}}
    many = {"name": "gpu", "exactly": {**body, "count": draw(st.integers(2, 3))}}
    asked = objects.claim("claim-99", many)
    newcomer = a_pod("pod-99", draw(st.sampled_from("14")), asked.name)
    published = [objects.a_slice(node, draw(st.integers(2, 4))) for node in drawing.NODES]
    world = World(published, outcome.Workload(newcomer, (asked,)))
    places = [
        (one["spec"]["nodeName"], device["name"])
        for one in published
        for device in one["spec"]["devices"]
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
    bound = {one.key: one.node for name in view.nodes for one in world.people(view).of(name)}
    for key, node in bound.items():
        owner = pods.Owner("ReplicaSet", "web", "u") if draw(st.integers(0, 5)) else None
        opted = bool(draw(st.integers(0, 4)))
        world.known[key] = replace(world.known[key], node=node, owner=owner, movable=opted)
    return world


def moved(world: World) -> defrag.World:
    return defrag.World(world.view, world.held.get, world.known.get, worlds.DECIDING)


def settled(
    world: World, node: nodes.Node, leaving: Sequence[tenants.Tenant]
) -> list[ids.NodeName | None]:
    """Where those who leave go in a picture made anew, by key; None: nowhere."""
    view = world.without(leaving)
    asked = asking.of(view, world.asked, worlds.DECIDING)
    assert asked is not None
    fit = asked.answer(view, node)
    assert isinstance(fit, answers.Fit)
    drawing.put(
        view, drawing.written(view, world.asked, outcome.Placement(node.name, fit.picks, ""))
    )
    price = prices.Fewest(world.view)
    free = tenants.freed(leaving)
    again = dict(world.held)
    found: dict[str, ids.NodeName | None] = {}
    for one in sorted(leaving, key=lambda one: (-price.of([one])[1], one.key)):
        mine = [again[key] for key in one.pod.claim_keys]
        todo = [c for c in mine if c.key in free and again[c.key] is world.held[c.key]]
        rest = tuple(c for c in mine if c not in todo)
        pod = replace(one.pod, node=None)
        asks = outcome.Workload(pod, tuple(replace(c, allocation=None) for c in todo), rest)
        found[one.key] = _come_again(view, again, asks)
    return [found[key] for key in sorted(found)]


def _come_again(
    view: picture.Picture, again: dict[ids.Key, claims.Claim], asks: outcome.Workload
) -> ids.NodeName | None:
    rules = worlds.DECIDING if asks.open else replace(worlds.DECIDING, rules=NO_RULES)
    answer = allocate.allocate(view, asks, rules)
    if not isinstance(answer, outcome.Placement):
        return None
    made = assemble.allocations(view, asks, answer, "")
    for claim in asks.open:
        again[claim.key] = replace(claim, allocation=made[claim.key])
        view.put_claim(claim.key, again[claim.key])
    view.put_pod(asks.pod.key, replace(asks.pod, node=answer.node))
    return answer.node


@settings(max_examples=100, deadline=None)
@given(movable())
def test_a_plan_is_the_best_of_all_plans(world: World) -> None:
    """Fewest that wait, then fewest pods, then least memory; held against trying all."""
    view = world.view
    before = drawing.shown(view)
    plan = defrag.make(moved(world), world.asked, ENOUGH)
    assert drawing.shown(view) == before
    if isinstance(plan, defrag.Plan) and not plan.moves:
        assert fits(view, world.asked, view.nodes[plan.placement.node])
        return
    every = []
    for name, node in sorted(view.nodes.items()):
        there = [one for one in world.people(view).of(name) if not defrag.why_not(one.pod)]
        for cost, leaving in every_way(world, node, there):
            where = settled(world, node, leaving)
            every.append((where.count(None), cost, name, [one.key for one in leaving], where))
    if isinstance(plan, defrag.NoPlan):
        assert not every
        return
    by_key = {one.tenant.key: one.again for one in plan.moves}
    keys = sorted(by_key)
    goes = [getattr(by_key[key], "node", None) for key in keys]
    leaving = tuple(one.tenant for one in plan.moves)
    cost = prices.Fewest(view).of(leaving)
    told = (len(plan.waiting), cost, plan.placement.node, keys, goes)
    assert told == min(every, key=lambda one: one[:4])
    assert not any(defrag.why_not(one.pod) for one in leaving)
