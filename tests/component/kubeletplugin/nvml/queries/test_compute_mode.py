"""Compute modes through real pynvml, on a simulated machine's library."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import ids
from driver.devices import mig
from driver.kubeletplugin.nvml.queries import compute_mode
from driver.kubeletplugin.prepare import compute_modes
from simulator import store
from tests.fakes import simulated_node

DEFAULT, EXCLUSIVE = compute_modes.DEFAULT, compute_modes.EXCLUSIVE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="compute modes and MIG are root's")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[simulated_node.SimulatedNode]:
    with simulated_node.running(tmp_path, "hgx-h100") as running:
        yield running


def mode_of(node: simulated_node.SimulatedNode, device: str) -> int:
    """A GPU's or MIG device's, as the machine has it."""
    machine = store.load(node.at.base)
    for gpu in machine.gpus:
        board = machine.board(gpu)
        parts = (compute_instance for part in board.instances for compute_instance in part.compute)
        fields = {gpu.uuid: board.compute_mode, **{part.uuid: part.compute_mode for part in parts}}
        if device in fields:
            return fields[device]
    raise LookupError(device)


def test_a_mig_device_has_a_compute_mode_of_its_own(node: simulated_node.SimulatedNode) -> None:
    gpu = node.gpus()[0].uuid
    part = node.by_hand(mig.InstanceRef(gpu, 9, mig.Placement(4, 4)))
    knob = compute_mode.NvmlComputeModes(node.library.session)
    knob.write(part, EXCLUSIVE)
    assert (mode_of(node, part), mode_of(node, gpu)) == (EXCLUSIVE, DEFAULT)
    assert knob.read(part) == EXCLUSIVE
    knob.write(part, DEFAULT)
    assert mode_of(node, part) == DEFAULT


def test_a_whole_gpu_is_exclusive_and_its_neighbour_is_not(
    node: simulated_node.SimulatedNode,
) -> None:
    gpu, neighbour = (gpu.uuid for gpu in node.gpus()[:2])
    compute_mode.NvmlComputeModes(node.library.session).write(ids.GpuUuid(gpu), EXCLUSIVE)
    assert (mode_of(node, gpu), mode_of(node, neighbour)) == (EXCLUSIVE, DEFAULT)


def test_a_gpu_that_is_shared_has_its_mode_again_afterwards(
    node: simulated_node.SimulatedNode, tmp_path: Path
) -> None:
    gpu = node.gpus()[0].uuid
    knob = compute_mode.NvmlComputeModes(node.library.session)
    setting = compute_modes.PersistentComputeModes(
        knob, tmp_path / "compute-modes", lambda: "one load"
    )
    knob.write(gpu, EXCLUSIVE)
    assert setting.set_shared(gpu, exclusive=False) == EXCLUSIVE
    assert mode_of(node, gpu) == DEFAULT
    setting.restore(gpu)
    assert mode_of(node, gpu) == EXCLUSIVE
