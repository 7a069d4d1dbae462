"""The real adapter, by unmodified pynvml, on the simulated C library."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from driver import errors
from driver.kubeletplugin.nvml import library as nvml
from simulator import builder, control, layout, machine, store
from tests.fakes import nvml as fakes

SEED = "node-1"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    builder.build(tmp_path, store.create(tmp_path, "hgx-h100", SEED))
    return tmp_path


def start(base: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "simulator", "run", str(base)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready: ")
    return process


def stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.communicate(timeout=10)


@pytest.fixture
def running(base: Path) -> Iterator[Path]:
    process = start(base)
    yield base
    stop(process)


@pytest.fixture
def adapter(base: Path) -> Iterator[nvml.NvmlLibrary]:
    at = layout.Layout(base)
    made = nvml.NvmlLibrary(at.driver_root, at.host_root)
    yield made
    made.close()
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.mark.usefixtures("running")
def test_the_adapter_sees_what_the_fake_sees(adapter: nvml.NvmlLibrary) -> None:
    expected = fakes.FakeNvml(machine.build("hgx-h100", seed=SEED)).inventory()
    assert adapter.inventory() == expected
    assert len(expected.gpus) == 8
    assert all(len(gpu.nvlink_peers) == 7 for gpu in expected.gpus)


def test_a_lost_gpu_is_counted_and_the_others_are_read(
    adapter: nvml.NvmlLibrary, running: Path
) -> None:
    control.send(running, "lose", "3")
    found = adapter.inventory()
    assert len(found.gpus) == 7
    (broken,) = found.broken
    assert broken.where == "GPU at index 3"
    assert "NVML error 15" in broken.problem
    control.send(running, "restore", "3")
    assert len(adapter.inventory().gpus) == 8


def test_a_driver_that_is_not_loaded_is_a_fault_until_it_is(
    adapter: nvml.NvmlLibrary, base: Path
) -> None:
    with pytest.raises(errors.DeviceFault) as fault:
        adapter.inventory()
    assert fault.value.code == pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    process = start(base)
    assert len(adapter.inventory().gpus) == 8
    stop(process)
    with pytest.raises(errors.DeviceFault):
        adapter.inventory()
    process = start(base)
    assert len(adapter.inventory().gpus) == 8
    stop(process)


def test_a_root_without_the_library_is_a_fault_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(errors.DeviceFault, match=r"libnvidia-ml\.so\.1") as fault:
        nvml.NvmlLibrary(tmp_path, tmp_path).inventory()
    assert fault.value.code == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND


@pytest.mark.usefixtures("running")
def test_closing_twice_is_harmless_and_reading_opens_again(adapter: nvml.NvmlLibrary) -> None:
    adapter.inventory()
    adapter.close()
    adapter.close()
    assert len(adapter.inventory().gpus) == 8
