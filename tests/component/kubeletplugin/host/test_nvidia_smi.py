"""The real nvidia-smi stand-in of a driver root, run as the plugin runs it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import driver_root, nvidia_smi
from simulator import builder, control, layout, machine, node, store

SEED = "node-1"
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to enter the driver's file system"
)


@pytest.fixture(params=["hgx-h100"])
def base(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    builder.build(tmp_path, store.create(tmp_path, request.param, SEED))
    running = node.Node(tmp_path)
    running.start()
    yield tmp_path
    running.stop()


def smi(base: Path) -> nvidia_smi.NvidiaSmi:
    return nvidia_smi.NvidiaSmi(driver_root.DriverRoot(layout.Layout(base).driver_root))


def program(base: Path) -> Path:
    return layout.Layout(base).driver_root / "usr/bin" / nvidia_smi.SMI


def uuid(name: str = "hgx-h100") -> ids.GpuUuid:
    built = machine.build(name, seed=SEED)
    return ids.GpuUuid(built.gpus[0].uuid)


def interval(base: Path) -> object:
    load = store.load(base)
    return load.board(load.gpus[0]).timeslice


@pytest.mark.parametrize(("name", "number"), list(nvidia_smi.INTERVALS.items()))
def test_the_time_slice_is_set(base: Path, name: str, number: int) -> None:
    assert smi(base).set_interval(uuid(), name) is None
    assert interval(base) == number


@pytest.mark.parametrize("base", ["vgpu-guest"], indirect=True)
def test_a_gpu_without_the_knob_says_so_in_its_words(base: Path) -> None:
    unsupported = smi(base).set_interval(uuid("vgpu-guest"), "Long")
    assert isinstance(unsupported, ports.Unsupported)
    assert "not supported" in unsupported.message.lower()


def test_a_gpu_that_is_not_there_is_a_fault(base: Path) -> None:
    with pytest.raises(errors.NodeFault, match="set the time slice of GPU-none"):
        smi(base).set_interval(ids.GpuUuid("GPU-none"), "Long")


def test_a_root_without_the_program_is_a_fault_that_names_it(base: Path) -> None:
    program(base).unlink()
    with pytest.raises(
        errors.NodeFault, match=r"find nvidia-smi: .* has none \(yet\) in .*usr/bin"
    ):
        smi(base).set_interval(uuid(), "Long")


def test_a_gpu_is_reset_unless_it_is_in_use(base: Path) -> None:
    with pytest.raises(errors.NodeFault, match=r"exit 255: .* In use by another client"):
        smi(base).reset(uuid())
    command = [str(program(base)), "-i", "0", "-pm", "0"]
    subprocess.run(command, check=True, capture_output=True)
    control.send(base, "recovery", uuid(), "GPU_RESET")
    smi(base).reset(uuid())
    load = store.load(base)
    assert load.board(load.gpus[0]).recovery == 0
