"""Which pods would have to go: held against trying every set of pods on small clusters."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.controller import picture
from driver.controller.allocation import allocate, answers, outcome
from driver.controller.allocation.whatif import absence, asking, freeing, prices, tenants
from driver.resources import nodes
from tests import objects, worlds
from tests.properties import drawing

ENOUGH = 1_000_000


@dataclass
class World:
    """A cluster with pods that were placed one after the other, and one that is to come."""

    published: list[drawing.Raw]
    there: list[drawing.Written]
    view: picture.Picture
    asked: outcome.Workload

    @property
    def people(self) -> tenants.Tenants:
        claims = {one.key: one for written in self.there for one in written.claims}
        pods = {one.pod.key: one.pod for one in self.there}
        return tenants.Tenants(self.view, claims.get, pods.get)

    def without(self, gone: Sequence[tenants.Tenant]) -> picture.Picture:
        """The picture of what there is but for these pods and their claims, made at once."""
        keys = {one.key for one in gone}
        return drawing.fresh(
            self.published, [one for one in self.there if one.pod.key not in keys]
        )


@st.composite
def populated(draw: st.DrawFn) -> World:
    """Some of the workloads that come find a place."""
    published = draw(drawing.published())
    view = drawing.fresh(published)
    there: list[drawing.Written] = []
    for number in range(draw(st.integers(1, 6))):
        asked = draw(drawing.workloads(number))
        answer = allocate.allocate(view, asked, worlds.DECIDING)
        if isinstance(answer, outcome.Placement):
            one = drawing.written(view, asked, answer)
            drawing.put(view, one)
            there.append(one)
    return World(published, there, view, draw(drawing.workloads(99)))


def fits(view: picture.Picture, asked: outcome.Workload, node: nodes.Node) -> bool:
    found = asking.of(view, asked, worlds.DECIDING)
    return found is not None and isinstance(found.answer(view, node), answers.Fit)


def every_way(world: World, node: nodes.Node) -> list[tuple[object, ...]]:
    """The sets that do on a node and hold no other one, by price: found by trying all."""
    there = world.people.of(node.name)
    price = prices.Fewest(world.view)
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


def search(world: World, most: int = ENOUGH) -> freeing.Search | None:
    asked = asking.of(world.view, world.asked, worlds.DECIDING)
    if asked is None:
        return None
    return freeing.Search(world.view, asked, prices.Fewest(world.view), asking.Meter(most))


@settings(max_examples=3000, deadline=None)
@given(populated())
def test_the_sets_of_pods_that_would_do_are_those_that_trying_all_finds(world: World) -> None:
    before, mark = drawing.shown(world.view), world.view.mark
    for node in world.view.nodes.values():
        looked = search(world)
        assert looked is not None
        there = world.people.of(node.name)
        found = [(one.cost, one.names) for one in freeing.ways(looked, node, there)]
        assert found == every_way(world, node)
    assert (drawing.shown(world.view), world.view.mark) == (before, mark)
