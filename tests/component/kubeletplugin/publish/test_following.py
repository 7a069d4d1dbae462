"""The slices follow the Node's label, through a handover, under whatever happens meanwhile."""

from typing import Any

import pytest

from driver import names
from driver.kube import gvr
from tests.fakes import clock as fake_clock
from tests.fakes import plugin_shell, publishing, waiting
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.fakes.publishing import NodeMaker, Start, only_slice

SLICES = gvr.RESOURCE_SLICES
SWIFT = pytest.mark.parametrize("time", [fake_clock.Swift()], ids=["swift"])
"""Ten times as fast: a handover takes three seconds."""


@SWIFT
def test_the_slices_follow_through_a_handover_there_and_back(
    api: api_server.ApiServer, start: Start, node: NodeMaker, events: plugin_shell.Events
) -> None:
    publishing.published(start())
    generations = [only_slice(api)["spec"]["pool"]["generation"]]
    for label in ("scheduler", "controller"):
        node({names.ALLOCATOR_LABEL: label})
        publishing.until_given_by(api, None)
        publishing.until_given_by(api, label)
        generations.append(only_slice(api)["spec"]["pool"]["generation"])
    assert generations == [1, 2, 3]
    assert publishing.breaches(api) == []
    waiting.until(lambda: len(events.good_news) == 4)
    words = ["AllocatorChanging", "AllocatorChanged"]
    assert [event[2] for event in events.good_news] == [*words, *words]


@SWIFT
def test_a_device_that_a_claim_holds_goes_along_otherwise_unaltered(
    api: api_server.ApiServer, start: Start, node: NodeMaker, holding: set[str]
) -> None:
    publishing.published(start())
    share = "gpu-0000-08-00-0-ts"
    holding.add(share)

    def held() -> dict[str, Any]:
        return next(device for device in publishing.devices(api) if device["name"] == share)

    previous = held()
    node({names.ALLOCATOR_LABEL: "scheduler"})
    publishing.until_given_by(api, None)
    assert {**held(), "taints": 0} == {**previous, "taints": 0}
    waiting.until(lambda: held()["attributes"]["allocator"]["string"] == "scheduler", 20)
    assert [taint["key"] for taint in held()["taints"]] == [names.WITHDRAWN_TAINT]
    attributes = {**previous["attributes"], "allocator": {"string": "scheduler"}}
    assert {**held(), "taints": 0} == {**previous, "taints": 0, "attributes": attributes}
    assert publishing.breaches(api) == []


@SWIFT
def test_stopped_in_the_middle_the_next_one_takes_the_whole_time(
    api: api_server.ApiServer, start: Start, node: NodeMaker
) -> None:
    running = start()
    publishing.published(running)
    node({names.ALLOCATOR_LABEL: "scheduler"})
    publishing.until_given_by(api, None)
    running.stop()
    publishing.published(start())
    publishing.until_given_by(api, "scheduler")
    assert publishing.breaches(api) == []


@SWIFT
def test_wiped_in_the_middle_they_come_back_under_handover(
    api: api_server.ApiServer, start: Start, node: NodeMaker
) -> None:
    publishing.published(start())
    node({names.ALLOCATOR_LABEL: "scheduler"})
    publishing.until_given_by(api, None)
    for entry in api.all(SLICES):
        api.remove(SLICES, entry["metadata"]["name"])
    publishing.until_given_by(api, None)
    publishing.until_given_by(api, "scheduler")
    assert publishing.breaches(api) == []


@SWIFT
def test_while_the_node_cannot_be_read_all_stays_as_it_is(
    api: api_server.ApiServer, start: Start, node: NodeMaker
) -> None:
    running = start()
    publishing.published(running)
    count = len(publishing.writes(api))
    api.faults.add(faults.Answer(500), asks_for_the_node)
    node({names.ALLOCATOR_LABEL: "scheduler"})
    requested = len(list(filter(asks_for_the_node, api.requests)))
    waiting.until(lambda: len(list(filter(asks_for_the_node, api.requests))) > requested + 5)
    assert (len(publishing.writes(api)), running.publisher.problem()) == (count, None)
    api.faults.clear()
    publishing.until_given_by(api, None)


def asks_for_the_node(request: faults.Request) -> bool:
    return request.path.endswith("/nodes/node-a")
