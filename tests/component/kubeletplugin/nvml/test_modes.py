"""Compute modes through real pynvml, on a simulated machine's library."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import ids
from driver.devices import mig
from driver.kubeletplugin.nvml import modes
from simulator import store
from tests.fakes import simulated_node

DEFAULT, EXCLUSIVE = 0, 3

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
        parts = (one for part in board.instances for one in part.compute)
        known = {gpu.uuid: board.compute_mode, **{one.uuid: one.compute_mode for one in parts}}
        if device in known:
            return known[device]
    raise LookupError(device)


def test_a_mig_device_has_a_compute_mode_of_its_own(node: simulated_node.SimulatedNode) -> None:
    gpu = node.gpus()[0].uuid
    part = node.by_hand(mig.Place(gpu, 9, mig.Placement(4, 4)))
    setting = modes.Modes(node.library.session)
    setting.set_exclusive(part, exclusive=True)
    assert (mode_of(node, part), mode_of(node, gpu)) == (EXCLUSIVE, DEFAULT)
    setting.set_exclusive(part, exclusive=False)
    assert mode_of(node, part) == DEFAULT


def test_a_whole_gpu_is_exclusive_and_its_neighbour_is_not(
    node: simulated_node.SimulatedNode,
) -> None:
    gpu, neighbour = (one.uuid for one in node.gpus()[:2])
    modes.Modes(node.library.session).set_exclusive(ids.GpuUuid(gpu), exclusive=True)
    assert (mode_of(node, gpu), mode_of(node, neighbour)) == (EXCLUSIVE, DEFAULT)


def test_a_gpu_that_is_opened_up_has_its_mode_again_afterwards(
    node: simulated_node.SimulatedNode,
) -> None:
    gpu = node.gpus()[0].uuid
    setting = modes.Modes(node.library.session)
    assert setting.open_up(gpu) is None
    setting.set_exclusive(gpu, exclusive=True)
    assert setting.open_up(gpu) == EXCLUSIVE
    assert mode_of(node, gpu) == DEFAULT
    setting.put_back(gpu, EXCLUSIVE)
    assert mode_of(node, gpu) == EXCLUSIVE
