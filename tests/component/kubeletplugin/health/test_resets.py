"""Resets on request by the real plugin process, on a simulated machine with claims of every face.

In the machine nvidia-smi refuses while anybody, the plugin included, has the GPU open.
"""

import os
from typing import Any

import pytest

from driver import names
from driver.kube import gvr
from simulator import control, store
from tests.fakes import battering, publishing, waiting
from tests.fakes.apiserver import server as api_server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="MIG and resets are root's")
RESETTING = ("--reset-gpus", "--health-poll-seconds=0.2")
IDLE = 4
FACES = ("whole", "mps", "mig", "ts")
"""By the minor numbers of their GPUs."""


def ask(node: battering.Battered, gpu: int, action: str = "GPU_RESET") -> None:
    control.send(node.base, "recovery", str(gpu), action)


def asking(node: battering.Battered) -> list[int]:
    """The GPUs that ask for something, by minor number."""
    machine = store.load(node.base)
    return [machine.minor(gpu) for gpu in machine.gpus if machine.board(gpu).recovery]


def wholes(api: api_server.ApiServer) -> list[dict[str, Any]]:
    """The whole GPUs that are published, in the order of their minor numbers."""
    results = [device for device in publishing.devices(api) if device["name"].count("-") == 4]
    return sorted(results, key=lambda entry: str(entry["name"]))


def tainted(api: api_server.ApiServer) -> list[int]:
    """The GPUs that are published with a taint for what they ask, by minor number."""
    return [
        number
        for number, whole in enumerate(wholes(api))
        if any(taint["key"] == names.TAINT_RECOVERY for taint in whole.get("taints") or ())
    ]


def events(api: api_server.ApiServer) -> list[tuple[str, str]]:
    """Events about resets: type and words."""
    events = api.all(gvr.EVENTS)
    return [(event["type"], event["note"]) for event in events if event["reason"] == "GpuReset"]


def test_a_gpu_that_requests_a_reset_is_reset_only_when_idle(
    battered: battering.Battered, api: api_server.ApiServer
) -> None:
    refs = battered.claims()
    battered.again("prepare", refs)
    previous = battered.left()
    for gpu in (*range(len(FACES)), IDLE):
        ask(battered, gpu)
    waiting.until(lambda: tainted(api) == [0, 1, 2, 3, IDLE], battering.WITHIN_S)
    assert asking(battered) == [0, 1, 2, 3, IDLE]
    battered.kill()
    battered.start(*RESETTING)
    waiting.until(lambda: asking(battered) == [0, 1, 2, 3], battering.WITHIN_S)
    waiting.until(lambda: tainted(api) == [0, 1, 2, 3], battering.WITHIN_S)
    waiting.until(lambda: events(api), battering.WITHIN_S)
    ((kind, words),) = events(api)
    assert (kind, "asked for GPU_RESET and was reset in" in words) == ("Normal", True)
    assert battered.left() == previous
    battered.again("unprepare", refs)
    assert asking(battered) == [0, 1, 2, 3]
    for gpu in range(len(FACES)):
        ask(battered, gpu, "DRAIN_AND_RESET")
    waiting.until(lambda: not tainted(api), battering.WITHIN_S)
    assert asking(battered) == []
    assert battered.left() == []


def test_a_gpu_that_another_program_watches_is_told_of_and_stays_tainted(
    battered: battering.Battered, api: api_server.ApiServer
) -> None:
    battered.start("--instance=second", *RESETTING)
    ask(battered, IDLE)
    waiting.until(lambda: events(api), battering.WITHIN_S)
    ((kind, words),) = events(api)
    assert (kind, "In use by another client" in words) == ("Warning", True)
    waiting.until(lambda: tainted(api) == [IDLE])
    assert asking(battered) == [IDLE]
