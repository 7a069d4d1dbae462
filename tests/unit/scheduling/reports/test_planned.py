"""Tests of what backfill keeps, in every report: by the decider's plan, through the caches."""

import re

import prometheus_client
import pytest

from driver import names
from driver.cli.commands import devices, queues, who
from driver.controller.collectors import scrape
from driver.controller.web import source as web_source
from driver.runtime.metrics import collector as metric_collector
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.reports import catalog, selection
from tests.fakes import quickstart
from tests.fakes.deciding import World
from tests.support import web_page
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_queue

RULES = backfill_plan.BackfillRules(600.0, 300.0, 1.0)


@pytest.fixture
def world() -> World:
    """Return a world with two of eight GPUs in use and all reserved for the head of line."""
    created = quickstart.world(backfill=RULES)
    created.add(a_queue("team", members=[{"namespace": "default"}]))
    created.add(*quickstart.whole("first", 2), *quickstart.whole("second", 8))
    created.settle()
    created.add(*quickstart.whole("large", 8))
    created.settle(700.0)
    assert created.decider.current_plan() is not None
    return created


def reports(world: World) -> web_source.ReportSource:
    minded = web_source.SourceInputs(
        lambda: None, tuple, catalog.no_explanation, tuple, lambda: None, world.decider.current_plan
    )
    return web_source.ReportSource(world.stores, names.DRIVER, minded, world.clock)


def end(world: World) -> str:
    plan = world.decider.current_plan()
    assert plan is not None
    return plan.end


def test_kept_gpus_are_not_free_and_say_for_whom_and_until_when(world: World) -> None:
    result = reports(world).read()
    assert result.fleet().modes == {"kept": 6, "whole": 10}
    assert result.fleet().products[0].free == 0
    gpus = [gpu for node in result.nodes().items for gpu in node.gpus if gpu.mode == "kept"]
    assert {entry.holder for gpu in gpus for entry in gpu.kept} == {"pod default/large"}
    assert {entry.until for gpu in gpus for entry in gpu.kept} == {end(world)}
    assert {entry.why for gpu in gpus for entry in gpu.kept} == {"starved"}


def test_devices_shows_them(world: World) -> None:
    answer = devices.build_answer(reports(world).read(), "", selection.NodeFilter(mode="kept"))
    rows = answer.parts[0].rows  # type: ignore[union-attr]
    assert len(rows) == 6
    assert all(f"pod default/large until {end(world)}" in row for row in rows)


def test_the_who_command_shows_backfill_reservations(world: World) -> None:
    answer = who.build_answer(reports(world).read(), "", "")
    rows = [row for row in answer.parts[0].rows if "kept" in row]  # type: ignore[union-attr]
    assert len(rows) == 6
    assert all(row[0] == "pod default/large" and f"until {end(world)}" in row for row in rows)
    assert who.build_answer(reports(world).read(), "", "elsewhere").document == []


def test_queues_shows_them_at_the_queue_of_the_pod(world: World) -> None:
    (row,) = queues.build_answer(reports(world).read()).parts[0].rows  # type: ignore[union-attr]
    assert f"6 until {end(world)}" in row


def test_metrics_count_them(world: World) -> None:
    source = reports(world)
    sources = scrape.Sources(
        lambda: True,
        source.nodes,
        tuple,
        world.decider.pending_state,
        dict,
        dict,
    )
    registry = prometheus_client.CollectorRegistry()
    controller_collector = scrape.ControllerCollector(sources, world.clock)
    registry.register(
        metric_collector.FigureCollector(scrape.FAMILIES, controller_collector.figures)
    )
    plan = world.decider.current_plan()
    assert plan is not None
    value = registry.get_sample_value
    assert value("dra_gpu_controller_backfill_gpus", {"why": "starved"}) == 8
    assert value("dra_gpu_controller_backfill_gpus", {"why": "known-end"}) == 0
    until = value("dra_gpu_controller_backfill_end_timestamp_seconds")
    assert until == plan.until.timestamp()


def test_when_nobody_waits_nothing_is_kept_in_any_report(world: World) -> None:
    source = reports(world)
    world.remove_pod("large")
    world.add(objects.a_claim("large-gpu"))
    world.settle(5.0)
    assert source.read().fleet().modes == {"free": 6, "whole": 10}


def test_the_page_shows_them_and_their_end(world: World) -> None:
    page = web_page.an_application(web_page.Fixed(reports(world).read())).test_client()
    overview, listed = page.get("/").text, page.get("/queues").text
    assert overview.count('<rect class="kept"') == 8
    assert overview.count('title="for pod default/large until ') == 6
    assert re.search(r'<span title="until [^"]+">6</span>', listed)


def test_the_page_of_a_gpu_says_for_whom_it_is_kept(world: World) -> None:
    result = reports(world).read()
    gpu = next(gpu for node in result.nodes().items for gpu in node.gpus if gpu.mode == "kept")
    page = web_page.an_application(web_page.Fixed(result)).test_client()
    text = page.get(f"/nodes/{gpu.node}/gpus/{gpu.name}").text
    assert "pod default/large" in text
    assert "(backfill)" in text
