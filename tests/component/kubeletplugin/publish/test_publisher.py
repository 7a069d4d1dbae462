import threading
from pathlib import Path
from typing import Any

import prometheus_client
import pytest

from driver import errors, ids, names
from driver.devices import model
from driver.kube import gvr
from driver.kubeletplugin import metrics
from driver.kubeletplugin.publish import pool_builder
from driver.resources.dra import slices
from tests.fakes import plugin_shell, publishing, waiting
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.fakes.publishing import brand_of, only_slice

Start = publishing.Start
SLICES, NODES = gvr.RESOURCE_SLICES, gvr.NODES
ABSENT = errors.DeviceFault("", "nvmlInit", 12, "Library not found")
NodeMaker = publishing.NodeMaker


FACES = 3
"""Of a GPU without MIG: whole, MPS, time-sliced."""


@pytest.mark.usefixtures("node")
def test_the_nodes_gpus_are_published_as_slices_of_the_node(
    api: api_server.ApiServer, start: Start, registry: prometheus_client.CollectorRegistry
) -> None:
    publishing.published(start())
    result = only_slice(api)
    assert result["metadata"]["name"] == "node-a-gpu.ration.dev-00001"
    owner = result["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Node", "node-uid", True)
    assert result["spec"]["pool"] == {"name": "node-a", "generation": 1, "resourceSliceCount": 2}
    assert len(result["spec"]["devices"]) == 8 * FACES
    assert (
        sum(
            registry.get_sample_value("dra_gpu_plugin_devices", {"allocator": entry}) or 0.0
            for entry in metrics.ALLOCATORS
        )
        == 8 * FACES
    )
    waiting.until(lambda: registry.get_sample_value("dra_gpu_plugin_slices") == 2)


@pytest.mark.usefixtures("node")
def test_slices_that_were_wiped_come_back_at_once(api: api_server.ApiServer, start: Start) -> None:
    publishing.published(start())
    for _ in range(3):
        api.remove(SLICES, "node-a-gpu.ration.dev-00000")
        waiting.until(lambda: len(api.all(SLICES)) == 2, within_s=2)
    waiting.until(lambda: only_slice(api)["spec"]["pool"]["generation"] == 4)
    assert only_slice(api)["spec"]["pool"]["generation"] == 4


@pytest.mark.usefixtures("node")
def test_nothing_is_written_when_nothing_changed_not_even_after_a_restart(
    api: api_server.ApiServer, start: Start, gpus: plugin_shell.Gpus
) -> None:
    running = start()
    publishing.published(running)
    looks = gpus.looks
    waiting.until(lambda: gpus.looks > looks + 3)
    running.stop()
    again = start()
    publishing.published(again)
    looks = gpus.looks
    waiting.until(lambda: gpus.looks > looks + 3)
    assert publishing.writes(api) == ["POST", "POST"]


@pytest.mark.usefixtures("node")
def test_a_gpu_that_changed_is_published(
    api: api_server.ApiServer, start: Start, gpus: plugin_shell.Gpus
) -> None:
    publishing.published(start())
    gpus.found = plugin_shell.inventory(7)
    waiting.until(lambda: len(only_slice(api)["spec"]["devices"]) == 7 * FACES)
    assert publishing.writes(api) == ["POST", "POST", "PUT", "PUT"]


def test_the_nodes_label_decides_who_allocates(
    api: api_server.ApiServer, start: Start, node: NodeMaker
) -> None:
    node({names.ALLOCATOR_LABEL: "scheduler"})
    publishing.published(start())
    device = only_slice(api)["spec"]["devices"][0]
    assert "taints" not in device
    assert device["attributes"]["allocator"] == {"string": "scheduler"}


def test_a_label_that_makes_no_sense_leaves_the_flag_in_force_and_is_told(
    api: api_server.ApiServer, start: Start, node: NodeMaker, events: plugin_shell.Events
) -> None:
    node({names.ALLOCATOR_LABEL: "me"})
    publishing.published(start())
    assert only_slice(api)["spec"]["devices"][0]["taints"][0]["value"] == "controller"
    (event,) = events.told
    assert event[:3] == ("Node", "node-a", "AllocatorLabelInvalid")


def test_a_node_that_is_not_there_yet_is_waited_for(
    api: api_server.ApiServer, start: Start
) -> None:
    running = start()
    waiting.until(lambda: "NotFound" in str(running.publisher.problem()))
    api.put(NODES, {"metadata": {"name": "node-a", "uid": "late"}})
    publishing.published(running)
    assert only_slice(api)["metadata"]["ownerReferences"][0]["uid"] == "late"


def test_a_node_that_was_made_anew_owns_the_new_slices(
    api: api_server.ApiServer, start: Start, node: NodeMaker
) -> None:
    del node
    publishing.published(start())
    api.put(NODES, {"metadata": {"name": "node-a", "uid": "second"}})
    for index in range(2):
        api.remove(SLICES, f"node-a-gpu.ration.dev-{index:05d}")
    waiting.until(lambda: len(api.all(SLICES)) == 2)
    assert only_slice(api)["metadata"]["ownerReferences"][0]["uid"] == "second"


@pytest.mark.usefixtures("node")
def test_a_server_that_fails_is_tried_again_more_and_more_slowly(
    api: api_server.ApiServer, start: Start, registry: prometheus_client.CollectorRegistry
) -> None:
    api.faults.add(faults.Answer(500), faults.writes, times=4)
    running = start()
    publishing.published(running)
    assert len(publishing.writes(api)) == 6
    assert registry.get_sample_value("dra_gpu_plugin_publish_failures_total") == 4


@pytest.mark.usefixtures("node")
def test_slices_lag_for_as_long_as_they_cannot_be_published(
    api: api_server.ApiServer, start: Start
) -> None:
    running = start()
    publishing.published(running)
    assert running.publisher.lag_s() == 0
    api.faults.add(faults.Answer(500), faults.writes, times=1000)
    api.remove(SLICES, "node-a-gpu.ration.dev-00001")
    waiting.until(lambda: running.publisher.lag_s() > 1, within_s=10)
    api.faults.clear()
    waiting.until(lambda: running.publisher.lag_s() == 0, within_s=20)
    assert len(api.all(SLICES)) == 2


@pytest.mark.usefixtures("node")
def test_fields_that_the_server_drops_are_told_once_and_not_written_for_ever(
    api: api_server.ApiServer,
    start: Start,
    gpus: plugin_shell.Gpus,
    events: plugin_shell.Events,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    created = api.storage.create

    def without_taints(kind: Any, namespace: str, body: Any) -> Any:
        for device in body.get("spec", {}).get("devices", []):
            device.pop("taints", None)
        return created(kind, namespace, body)

    monkeypatch.setattr(api.storage, "create", without_taints)
    publishing.published(start())
    looks = gpus.looks
    waiting.until(lambda: gpus.looks > looks + 3)
    assert publishing.writes(api) == ["POST", "POST"]
    (event,) = events.told
    assert event[:3] == ("Node", "node-a", "FieldsDropped")
    assert "spec.devices[0].taints" in event[3]


@pytest.mark.usefixtures("node")
def test_an_absent_gpu_driver_is_an_empty_pool_until_it_comes(
    api: api_server.ApiServer, start: Start, gpus: plugin_shell.Gpus, events: plugin_shell.Events
) -> None:
    present, gpus.found = gpus.found, ABSENT
    running = start()
    waiting.until(lambda: gpus.looks > 3 and api.all(SLICES))
    assert not only_slice(api)["spec"]["devices"]
    assert str(running.publisher.problem()).startswith("DriverNotReady: ")
    gpus.found = present
    publishing.published(running)
    assert len(only_slice(api)["spec"]["devices"]) == 8 * FACES
    assert [event[2] for event in events.told] == ["DriverNotReady"]


@pytest.mark.usefixtures("node")
def test_a_gpu_driver_that_fails_for_a_while_withdraws_nothing(
    api: api_server.ApiServer, start: Start, gpus: plugin_shell.Gpus
) -> None:
    running = start()
    publishing.published(running)
    gpus.found = errors.DeviceFault("", "nvmlDeviceGetCount", 999, "Unknown error")
    waiting.until(running.publisher.problem)
    assert len(only_slice(api)["spec"]["devices"]) == 8 * FACES


@pytest.mark.usefixtures("node")
def test_a_gpu_that_breaks_a_limit_is_not_published_and_the_node_says_so(
    api: api_server.ApiServer, start: Start, gpus: plugin_shell.Gpus, events: plugin_shell.Events
) -> None:
    inventory = plugin_shell.inventory(1, brand="B" * 65)
    present, gpus.found = gpus.found, inventory
    running = start()
    waiting.until(lambda: "SlicesInvalid" in str(running.publisher.problem()))
    assert not only_slice(api)["spec"]["devices"]
    assert [event[:3] for event in events.told] == [("Node", "node-a", "SlicesInvalid")]
    gpus.found = present
    publishing.published(running)


@pytest.mark.usefixtures("node")
def test_slices_of_others_are_neither_read_nor_touched(
    api: api_server.ApiServer, start: Start
) -> None:
    for driver, location in (("other.dev", "node-a"), ("gpu.ration.dev", "node-b")):
        pool = {"name": location, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": location, "pool": pool}
        api.put(SLICES, {"metadata": {"name": f"{location}-{driver}-00000"}, "spec": spec})
    publishing.published(start())
    assert len(api.all(SLICES)) == 4
    selectors = {
        request.query.get("fieldSelector")
        for request in api.requests
        if "resourceslices" in request.path
    }
    assert selectors - {None} == {"spec.driver=gpu.ration.dev,spec.nodeName=node-a"}


@pytest.mark.usefixtures("node")
def test_left_overs_of_an_earlier_naming_are_deleted(
    api: api_server.ApiServer, start: Start
) -> None:
    pool = {"name": "node-a", "generation": 7, "resourceSliceCount": 1}
    spec = {"driver": "gpu.ration.dev", "nodeName": "node-a", "pool": pool}
    api.put(SLICES, {"metadata": {"name": "00000-gpu-x7k2p"}, "spec": spec})
    publishing.published(start())
    assert only_slice(api)["spec"]["pool"]["generation"] == 8
    assert publishing.writes(api) == ["DELETE", "POST", "POST"]


@pytest.mark.usefixtures("node")
def test_a_server_without_counters_gets_whole_gpus_and_one_event(
    api: api_server.ApiServer,
    start: Start,
    gpus: plugin_shell.Gpus,
    events: plugin_shell.Events,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drop(body: Any) -> Any:
        for device in body.get("spec", {}).get("devices", []):
            device.pop("consumesCounters", None)
            device.pop("allowMultipleAllocations", None)
        return body

    store = api.storage._store
    monkeypatch.setattr(
        api.storage, "_store", lambda kind, name, old, new: store(kind, name, old, drop(new))
    )
    publishing.published(start())
    waiting.until(lambda: len(api.all(SLICES)) == 1 and "devices" in api.all(SLICES)[0]["spec"])
    assert len(only_slice(api)["spec"]["devices"]) == 8
    assert {
        device["attributes"]["type"]["string"] for device in only_slice(api)["spec"]["devices"]
    } == {"gpu"}
    looks = gpus.looks
    waiting.until(lambda: gpus.looks > looks + 3)
    (event,) = events.told
    assert event[2:] == (
        "SharingDisabled",
        "the API server drops allowMultipleAllocations, consumesCounters",
    )


@pytest.mark.usefixtures("node")
def test_below_the_floor_nothing_is_shared(
    api: api_server.ApiServer, start: Start, events: plugin_shell.Events
) -> None:
    api.pretend("v1.36.3")
    running = start()
    waiting.until(lambda: api.all(SLICES))
    assert len(only_slice(api)["spec"]["devices"]) == 8
    assert len(api.all(SLICES)) == 1
    waiting.until(lambda: events.told)
    assert events.told[0][2:] == ("SharingDisabled", "Kubernetes is v1.36.3, below 1.36.4")
    publishing.published(running)


@pytest.mark.usefixtures("node")
def test_an_allocated_device_stays_published_when_its_gpu_disappears(
    api: api_server.ApiServer, start: Start, gpus: plugin_shell.Gpus, holding: set[str]
) -> None:
    publishing.published(start())
    holding.add("gpu-0000-08-00-0")
    previous = only_slice(api)["spec"]["devices"][-FACES]
    gpus.found = plugin_shell.inventory(7)
    waiting.until(lambda: len(only_slice(api)["spec"]["devices"]) == 7 * FACES + 1)
    device = only_slice(api)["spec"]["devices"][-1]
    assert device["taints"][1]["key"] == "ration.dev/withdrawn"
    assert {**device, "taints": 0} == {**previous, "taints": 0}
    holding.clear()
    waiting.until(lambda: len(only_slice(api)["spec"]["devices"]) == 7 * FACES)


@pytest.mark.usefixtures("node")
def test_a_fault_waits_for_no_reading_and_has_its_own_gpu_checked_alone(
    api: api_server.ApiServer, start: Start, gpus: plugin_shell.Gpus
) -> None:
    faulty: set[ids.DeviceName] = set()
    checked: set[ids.GpuUuid] = set()

    def check(changed: frozenset[ids.GpuUuid]) -> model.Inventory:
        checked.update(changed)
        return plugin_shell.inventory(8)

    def tainted() -> set[ids.DeviceName]:
        return {
            ids.DeviceName(device["name"])
            for device in only_slice(api)["spec"]["devices"]
            if any(entry["key"] == taint.key for entry in device["taints"])
        }

    taint = slices.Taint("ration.dev/xid", "48", "NoSchedule")
    sources = pool_builder.Sources(
        gpus.look, health_taints=lambda _: dict.fromkeys(faulty, (taint,)), check_gpus=check
    )
    running = start(sources=sources, rediscover_s=60.0)
    publishing.published(running)
    for gpu in plugin_shell.inventory(2).gpus:
        faulty.add(ids.DeviceName(f"gpu-{gpu.pci.replace(':', '-').replace('.', '-')}"))
        running.publisher.publish_health(gpu.uuid)
        waiting.until(lambda: tainted() == faulty)
    waiting.until(lambda: checked == {gpu.uuid for gpu in plugin_shell.inventory(2).gpus})
    assert gpus.looks == 1
    running.publisher.publish_now()
    waiting.until(lambda: gpus.looks == 2)


@pytest.mark.usefixtures("node")
def test_a_loop_that_comes_round_is_told_from_one_that_hangs(
    start: Start, gpus: plugin_shell.Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    publishing.published(running)
    assert running.publisher.idle_s() < 5
    hanging, released = threading.Event(), threading.Event()

    def hang() -> None:
        hanging.set()
        released.wait(5)

    monkeypatch.setattr(gpus, "before", hang)
    assert hanging.wait(5)
    previous = running.publisher.idle_s()
    waiting.until(lambda: running.publisher.idle_s() > previous + 0.1)
    released.set()


@pytest.mark.usefixtures("node")
def test_the_newer_of_two_plugins_writes_until_it_is_gone(
    api: api_server.ApiServer, start: Start
) -> None:
    old, new = (plugin_shell.Gpus(plugin_shell.inventory(8, name)) for name in ("Old", "New"))
    first = start(old)
    publishing.published(first)
    second = start(new)
    waiting.until(lambda: brand_of(api) == "New")
    for entry in api.all(SLICES):
        api.remove(SLICES, entry["metadata"]["name"])
    waiting.until(lambda: brand_of(api) == "New")
    looks, count = old.looks, len(publishing.writes(api))
    waiting.until(lambda: old.looks > looks + 5)
    assert (len(publishing.writes(api)), brand_of(api), first.publisher.problem()) == (
        count,
        "New",
        None,
    )
    second.stop()
    waiting.until(lambda: brand_of(api) == "Old", within_s=10)


@pytest.mark.usefixtures("node")
def test_a_process_publishes_only_once_it_knows_that_it_is_the_newest(
    start: Start, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "publishers"
    in_the_way.write_text("no folder")
    running = start()
    waiting.until(lambda: str(in_the_way) in (running.publisher.problem() or ""))
    in_the_way.unlink()
    publishing.published(running)
