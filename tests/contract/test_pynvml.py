"""Tests of what is pynvml's own, on the simulated library: loading, structures, wrong pointers."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from tests.contract import worlds


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with worlds.running(tmp_path_factory.mktemp("machine"), "hgx-h100") as library:
        yield library


@pytest.fixture
def library(simulated: Path) -> Iterator[None]:
    """The library, loaded and not initialised."""
    with worlds.loaded(simulated):
        yield


@pytest.fixture
def gpu(library: None) -> Iterator[ctypes.c_void_p]:
    del library
    pynvml.nvmlInit()
    yield pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()


@pytest.mark.usefixtures("library")
def test_before_init_and_after_the_last_shutdown_everything_is_uninitialised() -> None:
    assert worlds.code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() > 0
    pynvml.nvmlShutdown()
    assert worlds.code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED


def test_the_older_memory_structure_counts_what_is_reserved_as_used(gpu: ctypes.c_void_p) -> None:
    older = pynvml.nvmlDeviceGetMemoryInfo(gpu)
    newer = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
    assert older.total == newer.total
    assert older.used == newer.used + newer.reserved


def test_a_memory_structure_of_unknown_version_is_refused(gpu: ctypes.c_void_p) -> None:
    info = pynvml.nvmlDeviceGetMemoryInfo
    code = worlds.code_of(lambda: info(gpu, version=0x09000028))
    assert code == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


@pytest.mark.usefixtures("gpu")
def test_a_null_handle_is_an_invalid_argument() -> None:
    code = worlds.code_of(pynvml.nvmlDeviceGetName, pynvml.c_nvmlDevice_t())
    assert code == pynvml.NVML_ERROR_INVALID_ARGUMENT


@pytest.mark.usefixtures("library")
def test_a_function_that_does_not_exist_is_not_found() -> None:
    code = worlds.code_of(pynvml._nvmlGetFunctionPointer, "nvmlDeviceGetWings")
    assert code == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
