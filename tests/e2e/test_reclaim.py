"""Tests that claims leave nothing on a node, with the API server away and without a kubelet.

The API server is ended and started again, so nothing else may use the cluster meanwhile.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client, gvr
from simulator import store as machines
from tests.e2e import playground

NODE = "e2e-a"
API = "kube-apiserver"
RUNS_S = 25
ENDS_S = 90.0
RECLAIMED_S = 180.0
AWAY_S = 75.0
"""Longer than two looks of the plugin after claims that are gone."""


def kept(field: playground.Playground) -> set[str]:
    """The claims that the node has a record or a CDI spec of, by file."""
    root = field.cluster.node_dir(NODE)
    records = (root / "state" / "claims").glob("*.json")
    specs = (root / "cdi").glob("gpu.ration.dev-*")
    return {path.name for path in (*records, *specs)}


@contextlib.contextmanager
def without_api(field: playground.Playground) -> Iterator[None]:
    field.cluster.kill(API)
    try:
        yield
    finally:
        field.cluster.start(API)
        playground.until(lambda: answers(field.kube), 60, "the API server answers")
        for name in field.cluster.controllers():  # who leads without a Lease ends itself
            if field.cluster.pid(name) is None:
                field.cluster.start(name)


def answers(kube: client.KubeClient) -> bool:
    try:
        kube.list(gvr.NODES)
    except Exception:  # noqa: BLE001 - whatever it says, it is not back yet
        return False
    return True


@pytest.mark.timeout(400)
def test_a_pod_that_ends_while_the_api_server_is_away_leaves_nothing_behind(
    field: playground.Playground,
) -> None:
    previous = kept(field)
    field.create(playground.a_template("gpu"))
    on = playground.on(NODE)
    command = f"nvidia-smi -L && sleep {RUNS_S}"
    field.create(
        playground.a_pod(
            "ends", template="gpu", nodeSelector=on, command=command, restartPolicy="Never"
        )
    )
    field.running("ends")
    assert len(kept(field) - previous) == 2
    with without_api(field):
        playground.until(
            lambda: kept(field) == previous, RUNS_S + ENDS_S, "record and spec are gone"
        )
        assert not answers(field.kube)
    playground.until(lambda: field.pod("ends")["status"]["phase"] == "Succeeded", 60, "it is told")


@pytest.mark.timeout(600)
def test_a_deleted_claim_is_reclaimed_without_a_kubelet_unless_the_api_fails(
    field: playground.Playground,
) -> None:
    previous = kept(field)
    field.create(playground.a_claim("mine"))
    field.create(playground.a_pod("pod", claims=("mine",), nodeSelector=playground.on(NODE)))
    field.running("pod")
    names = kept(field) - previous
    assert len(names) == 2
    (gpu,) = field.uuids("pod")
    field.cluster.kill("kubelet", NODE)
    try:
        end_processes(field.cluster.node_dir(NODE) / "gpu", gpu)
        field.delete_by_force("pod")
        field.kube.delete(gvr.RESOURCE_CLAIMS, "mine", field.namespace)
        playground.until(lambda: not field.claims(), 60, "the claim is gone")
        with without_api(field):
            time.sleep(AWAY_S)
            assert names <= kept(field), "reclaimed without a word of the API server"
        playground.until(lambda: not names & kept(field), RECLAIMED_S, "record and spec are gone")
    finally:
        field.cluster.start("kubelet", NODE)
    field.create(playground.a_claim("other"))
    field.create(playground.a_pod("next", claims=("other",), nodeSelector=playground.on(NODE)))
    field.running("next", 150)
    events = field.kube.list(gvr.EVENTS, namespace="default").items
    reported = [
        event["regarding"]["name"] for event in events if event["reason"] == "ClaimReclaimed"
    ]
    assert NODE in reported


def end_processes(machine: Path, gpu: str) -> None:
    """End the processes that hold memory of a GPU."""
    load = machines.load(machine)
    for process in load.board(load.find(gpu)).processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
