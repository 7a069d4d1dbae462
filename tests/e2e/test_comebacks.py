"""Tests of containers of every mode through a stop of the node, or of a part of it."""

import functools
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from driver.kube import client
from hack.cluster import api
from tests.e2e import one_gpu, playground

NODE = "e2e-r"
MODES = {
    "whole": one_gpu.WHOLE,
    "mps": one_gpu.MPS,
    "mig": one_gpu.A_PART,
    "turns": one_gpu.TURNS,
}
BACK_S = 30.0
"""From the end of the cause, for a container on a healthy device."""


@pytest.fixture(scope="module")
def node(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[str]:
    with one_gpu.a_node(cluster, kube, NODE):
        yield NODE


@pytest.fixture
def gpus(field: playground.Playground, node: str) -> dict[str, one_gpu.OneGpu]:
    """A running pod in every mode, each on a GPU of its own."""
    one_gpus = {mode: one_gpu.OneGpu(field, node, number) for number, mode in enumerate(MODES)}
    for mode, gpu in one_gpus.items():
        capacity = {"memory": "20Gi"} if mode in {"mps", "turns"} else None
        gpu.ask(mode, MODES[mode], capacity=capacity, command=f"sleep 1; exec {one_gpu.HOLD}")
    for mode, gpu in one_gpus.items():
        gpu.sees(mode)
    return one_gpus


def containers(field: playground.Playground) -> dict[str, Any]:
    result = {}
    for mode in MODES:
        (status,) = field.pod(mode)["status"]["containerStatuses"]
        result[mode] = (status["containerID"], status["restartCount"], status["ready"])
    return result


def specs(field: playground.Playground) -> set[str]:
    return {path.name for path in (field.cluster.node_dir(NODE) / "cdi").glob("gpu.ration.dev-*")}


def test_a_restart_of_the_kubelet_the_plugin_or_the_supervisor_disturbs_no_container(
    field: playground.Playground, gpus: dict[str, one_gpu.OneGpu]
) -> None:
    previous = containers(field)
    for component in ("kubelet", "plugin", "mps"):
        field.cluster.kill(component, NODE)
        field.cluster.start(component, NODE)
        playground.until(functools.partial(ready, field), 40, "the node is Ready")
    assert containers(field) == previous
    for gpu in gpus.values():
        gpu.free()


def test_specs_that_were_wiped_are_back_before_a_container_needs_them(
    field: playground.Playground, gpus: dict[str, one_gpu.OneGpu]
) -> None:
    previous = specs(field)
    shutil.rmtree(field.cluster.node_dir(NODE) / "cdi")
    for gpu in gpus.values():  # each container ends, and the kubelet starts it again
        (running,) = [process.pid for process in gpu.board().processes if process.memory]
        os.kill(running, signal.SIGKILL)
    for mode in MODES:
        playground.until(functools.partial(again, field, mode), BACK_S, f"{mode} runs again")
    assert specs(field) == previous
    for gpu in gpus.values():
        gpu.free()


def test_after_a_reboot_every_claim_keeps_its_gpu_and_its_container_restarts(
    field: playground.Playground, gpus: dict[str, one_gpu.OneGpu]
) -> None:
    previous = containers(field)
    field.cluster.reboot(NODE)
    playground.until(functools.partial(ready, field), 60, "the node is Ready")
    for mode in MODES:
        playground.until(functools.partial(again, field, mode), BACK_S, f"{mode} runs again")
    after = containers(field)
    assert all(after[mode][0] != previous[mode][0] for mode in MODES)
    assert gpus["mps"].board().compute_mode == 3
    assert len(gpus["mig"].board().instances) == 1
    for gpu in gpus.values():
        gpu.free()
    assert not specs(field)


def ready(field: playground.Playground) -> bool:
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    text = field.cluster.kubectl("get", "node", NODE, "--output", f"jsonpath={path}")
    return text.strip() == "True"


def again(field: playground.Playground, mode: str) -> bool:
    """Return whether the container was started anew, and runs."""
    status = field.pod(mode)["status"]["containerStatuses"][0]
    return status["restartCount"] > 0 and "running" in status["state"]
