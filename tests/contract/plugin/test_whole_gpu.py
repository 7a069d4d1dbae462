"""A whole GPU through a plugin's process: published, prepared, given back, tainted.

It changes no setting of a machine, so it may run on one that is not ours. What it measures is
printed (`-rP`), and asserted nowhere.
"""

import json
import os
import statistics
import sys
import threading
from typing import Any

import pytest

from driver import clock
from driver.kube import gvr
from tests.contract.plugin.running import NODE, Host, Running, Start
from tests.fakes import preparation as fakes
from tests.fakes import waiting
from tests.support.builders import objects

ROUNDS = 50
SETTLE_S = float(os.environ.get("RATION_SETTLE_S", "0"))
IDLE_S = float(os.environ.get("RATION_IDLE_S", "1"))
TIME = clock.SystemClock()
pytestmark = pytest.mark.timeout(240)


def show(name: str, value: object) -> None:
    sys.stdout.write(f"{name}: {value}\n")


def a_whole_gpu(running: Running) -> str:
    names = sorted(
        name
        for name, device in running.devices().items()
        if device["attributes"]["type"].get("string") == "gpu"
    )
    return names[0]


def put_claim(running: Running, name: str, device: str) -> None:
    claim: dict[str, Any] = objects.a_claim(name, status=objects.allocated(NODE, device))
    claim["metadata"]["uid"] = f"uid-{name}"
    running.api.put(gvr.RESOURCE_CLAIMS, claim)


def xids(running: Running) -> list[str]:
    """The messages of the events about Xid 31."""
    messages = (event["note"] for event in running.api.all(gvr.EVENTS))
    return [message for message in messages if "Xid 31" in message]


def test_gpus_are_published_with_their_identity_and_memory(
    start: Start,
) -> None:
    running = start()
    show("start to first slice, s", running.published_s)
    device = running.devices()[a_whole_gpu(running)]
    attributes = device["attributes"]
    assert attributes["uuid"]["string"].startswith("GPU-")
    assert attributes["productName"]["string"].startswith("NVIDIA ")
    assert "memory" in device["capacity"]
    show("device", json.dumps(device))
    show("RSS, MiB", running.resident_mib())
    threading.Event().wait(SETTLE_S)
    earlier, began = running.cpu_s(), TIME.monotonic()
    threading.Event().wait(IDLE_S)
    show("idle CPU, %", 100 * (running.cpu_s() - earlier) / (TIME.monotonic() - began))


def test_a_claim_is_prepared_with_the_gpus_node_and_given_back(
    start: Start,
) -> None:
    running = start()
    device = a_whole_gpu(running)
    prepares, unprepares = [], []
    for number in range(ROUNDS):
        name = f"claim-{number}"
        put_claim(running, name, device)
        began = TIME.monotonic()
        answer = running.plugin.prepare(fakes.ref(name))[f"uid-{name}"]
        prepares.append((TIME.monotonic() - began) * 1000)
        assert not answer.error, answer.error
        specs = [path.read_text() for path in running.cdi.iterdir()]
        assert any("/dev/nvidia" in text and f"uid-{name}" in text for text in specs)
        began = TIME.monotonic()
        assert not running.plugin.unprepare(fakes.ref(name))[f"uid-{name}"].error
        unprepares.append((TIME.monotonic() - began) * 1000)
        assert not any(f"uid-{name}" in path.read_text() for path in running.cdi.iterdir())
    show("Prepare p50, ms", statistics.median(prepares))
    show("Prepare p99, ms", max(prepares[1:]))
    show("Prepare, first, ms", prepares[0])
    show("Unprepare p50, ms", statistics.median(unprepares))


def test_a_programs_fault_taints_no_gpu(start: Start, host: Host) -> None:
    """Xid 31 is the program's own: it is counted, and the GPU stays."""
    running = start()
    earlier = running.devices()
    host.fault()
    waiting.until(lambda: xids(running))
    assert running.devices() == earlier


def test_an_xid_that_asks_for_a_reset_taints_its_gpu(
    start: Start,
    host: Host,
) -> None:
    running = start("--xid-class=31=reset")
    device = a_whole_gpu(running)
    earlier = running.devices()[device].get("taints", [])
    host.fault()
    began = TIME.monotonic()
    waiting.until(lambda: running.devices()[device].get("taints", []) != earlier)
    show("Xid to taint after the program's end, ms", (TIME.monotonic() - began) * 1000)
    after = running.devices()[device]["taints"]
    assert any("31" in json.dumps(taint) for taint in after if taint not in earlier), after
