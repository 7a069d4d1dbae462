"""Tests of what a scrape of the controller says of a cluster whose decider runs without threads."""

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from driver import names, reasons
from driver.controller import metrics
from driver.controller.collectors import fleet, scrape
from driver.controller.scheduler.metrics import pending, queues
from driver.controller.web import source as web_source
from driver.runtime.metrics.families import Figures
from driver.scheduling.reports import catalog, model
from tests.fakes.deciding import World
from tests.support.builders import objects, scheduler_objects

HERE = Path(__file__).parents[4]


def nodes_of(world: World) -> Callable[[], Sequence[model.Node]]:
    """The fleet's nodes, as the page's source has them."""
    minded = web_source.SourceInputs(lambda: None, tuple, catalog.no_explanation, tuple)
    return web_source.ReportSource(world.stores, names.DRIVER, minded, world.clock).nodes


class Scraped(World):
    """A leader's figures."""

    leads = True

    def figures(self) -> Figures:
        sources = scrape.Sources(
            lambda: self.leads,
            nodes_of(self),
            lambda: self.stores.reservations.snapshot().values(),
            self.decider.pending_state,
            self.metrics.queue_values,
            lambda: {"pods": 2.0, "queues": float("inf")},
        )
        return scrape.ControllerCollector(sources, self.clock).figures()

    def counted(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"dra_gpu_controller_{name}", labels)

    def waiting_by(self) -> dict[str, float]:
        figure = self.figures()[pending.PODS.name]
        return {reason: count for (reason,), count in figure.items() if count}


def test_a_pod_without_a_place_waits_by_its_reason_until_it_has_one() -> None:
    world = Scraped(1)
    world.add(objects.a_claim("big", objects.a_request(count=2)), objects.a_pod("pod", "big"))
    world.settle()
    assert world.waiting_by() == {"NoFit": 1}
    assert world.counted("refusals_total", reason="CapacityShort") == 0
    world.stores.slices.apply(objects.a_slice("node-1", 2))
    world.stores.nodes.apply(objects.a_node("node-1"))
    world.settle()
    assert world.waiting_by() == {}
    assert world.counted("pod_allocation_seconds_count") == 1


def test_each_reason_of_a_refusal_counts_once() -> None:
    world = Scraped(1, 1)
    world.cordon("node-0")
    world.add(objects.a_claim("taken"), objects.a_pod("first", "taken"))
    world.settle()
    world.add(objects.a_claim("late"), objects.a_pod("second", "late"))
    world.settle()
    assert world.counted("refusals_total", reason="NodeCordoned") == 1
    assert world.counted("refusals_total", reason="DeviceTaken") == 1


def test_a_pod_that_is_gone_waits_no_more() -> None:
    world = Scraped(1)
    world.add(objects.a_claim("big", objects.a_request(count=2)), objects.a_pod("pod", "big"))
    world.settle()
    world.remove_pod("pod")
    world.settle()
    assert world.waiting_by() == {}


def test_a_standby_has_no_series_of_what_only_a_leader_knows() -> None:
    world = Scraped(1)
    world.leads = False
    assert world.figures() == {}


def test_every_family_has_figures_and_no_figure_is_without_a_family() -> None:
    world = Scraped(1)
    figures = world.figures()
    shown = {family.name for family in scrape.FAMILIES} - {
        family.name for family in queues.FAMILIES
    }
    assert figures.keys() == shown  # no Queue, no series of queues
    assert figures[scrape.CACHE_AGE.name] == {("pods",): 2.0}


def test_the_fleet_is_counted_again_only_after_a_while() -> None:
    world = Scraped(1)
    standing = world.decider.pending_state
    sources = scrape.Sources(lambda: True, nodes_of(world), tuple, standing, dict, dict)
    shown = scrape.ControllerCollector(sources, world.clock)

    def free() -> float:
        return sum(shown.figures()[fleet.MEMORY.name].values())

    previous = free()
    world.stores.slices.apply(objects.a_slice("node-1", 1))
    assert free() == previous
    world.clock.advance(scrape.FLEET_S)
    assert free() == 2 * previous


def test_the_series_of_a_queue_end_with_it() -> None:
    world = Scraped(1)
    world.add(scheduler_objects.a_queue("team"))
    world.settle(5)
    assert ("team",) in world.figures()[queues.SHARE.name]
    world.stores.queues.apply(world._newer(world.server.own["team"]), deleted=True)
    world.settle(5)
    assert not world.figures().get(queues.SHARE.name)


def named(folder: str) -> set[reasons.Reason]:
    """The members of Reason that the code of a folder names."""
    nodes = (node for path in (HERE / folder).rglob("*.py") for node in read(path))
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    return {
        reasons.Reason[attribute.attr]
        for attribute in attributes
        if ast.unparse(attribute.value) == "reasons.Reason"
    }


def read(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


def test_every_reason_by_which_the_allocator_refuses_is_counted_by_name() -> None:
    others = {reasons.Reason.ALLOCATION_CLEARED, reasons.Reason.PREEMPTED}
    assert named("driver/scheduling/allocator") - others <= set(metrics.REFUSALS)
