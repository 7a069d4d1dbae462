"""A reset through the real nvidia-smi stand-in, while this process watches the GPUs by pynvml."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import errors, ids
from driver.devices import health
from driver.kubeletplugin.host import driver_root, nvidia_smi
from driver.kubeletplugin.nvml import health as nvml_health
from driver.kubeletplugin.nvml import reset as nvml_reset
from driver.kubeletplugin.nvml.queries import processes as gpu_processes
from simulator import store
from tests.fakes import simulated_node, waiting

WHOLE = 0xFFFFFFFF
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a reset is root's")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[simulated_node.SimulatedNode]:
    with simulated_node.running(tmp_path, "hgx-h100") as running:
        yield running


@pytest.fixture
def watcher(node: simulated_node.SimulatedNode) -> nvml_health.NvmlHealth:
    """It has all GPUs open, and their events."""
    created = nvml_health.NvmlHealth(node.library.session)
    created.watch(created.readable_gpus())
    return created


def hands(node: simulated_node.SimulatedNode) -> nvml_reset.GpuResetter:
    smi = nvidia_smi.NvidiaSmi(driver_root.DriverRoot(node.at.driver_root))
    return nvml_reset.GpuResetter(node.library.session, smi.reset)


def persistence(node: simulated_node.SimulatedNode, gpu: ids.GpuUuid) -> bool:
    machine = store.load(node.at.base)
    return machine.board(machine.find(gpu)).persistence


def test_a_gpu_that_this_process_watches_is_reset_and_watched_again(
    node: simulated_node.SimulatedNode, watcher: nvml_health.NvmlHealth
) -> None:
    gpu, other = (gpu.uuid for gpu in node.gpus()[:2])
    node.fault("recovery", gpu, "GPU_RESET")
    assert watcher.probe(gpu).recovery == health.RecoveryAction.GPU_RESET
    hands(node).reset(gpu)
    assert not watcher.watching
    assert watcher.probe(gpu).recovery == health.RecoveryAction.NONE
    assert persistence(node, gpu)
    watcher.watch(watcher.readable_gpus())
    node.fault("xid", other, 48, WHOLE, WHOLE)
    assert watcher.wait(5) == health.XidEvent(other, 48)


def test_a_wait_for_events_is_let_end_first(
    node: simulated_node.SimulatedNode, watcher: nvml_health.NvmlHealth
) -> None:
    gpu = node.gpus()[0].uuid
    results: list[object] = []
    waits = threading.Thread(target=lambda: results.append(watcher.wait(0.3)))
    waits.start()
    waiting.until(lambda: node.library.session._users)
    hands(node).reset(gpu)
    waits.join(5)
    assert results == [None]


def test_a_gpu_in_use_is_not_reset_and_is_left_as_it_was(
    node: simulated_node.SimulatedNode, watcher: nvml_health.NvmlHealth
) -> None:
    gpu = node.gpus()[0].uuid
    node.fault("process", gpu, 7, 1 << 30, WHOLE, WHOLE)
    assert gpu_processes.NvmlProcesses(node.library.session).count_all(gpu) == 1
    with pytest.raises(errors.NodeFault, match="In use by another client"):
        hands(node).reset(gpu)
    assert persistence(node, gpu)
    waiting.until(lambda: watcher.watch(watcher.readable_gpus()))
    assert watcher.watching
