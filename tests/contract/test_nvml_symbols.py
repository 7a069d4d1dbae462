"""NVIDIA's own libnvidia-ml of each version that can be had: what it has of what Ration calls."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from driver.kubeletplugin import nvml
from tests.fakes import nvidia_roots

ROOM = Path(nvml.__file__).parent
NO_DRIVER = 9
"""NVML_ERROR_DRIVER_NOT_LOADED."""
LATER = {
    "535.261.03": {
        "nvmlDeviceGetAddressingMode",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetUnrepairableMemoryFlag_v1",
    },
    "550.163.01": {"nvmlDeviceGetAddressingMode", "nvmlDeviceGetUnrepairableMemoryFlag_v1"},
}
"""What a version has not; all of it is a fact that a GPU may go without."""


@pytest.fixture(params=nvidia_roots.SYSTEMS, scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> nvidia_roots.Node:
    return nvidia_roots.lay_node("host", request.param, tmp_path_factory.mktemp("node") / "host")


def called() -> set[str]:
    """The functions of the library that the plugin's room calls, under their exported names."""
    text = "".join(path.read_text() for path in ROOM.rglob("*.py"))
    names = {name for name in re.findall(r"\bnvml[A-Z]\w+", text) if is_function(name)}
    assert "nvmlDeviceGetHandleByUUID" in names
    return {exported(name) for name in names}


def is_function(name: str) -> bool:
    return callable(getattr(pynvml, name, None)) and not isinstance(getattr(pynvml, name), type)


def exported(name: str) -> str:
    """The symbol that pynvml's function of that name looks up."""
    code = getattr(pynvml, name).__code__
    consts = [const for const in code.co_consts if isinstance(const, str) and const[:4] == "nvml"]
    return consts[0] if consts else name


def library(node: nvidia_roots.Node) -> Path:
    return node.driver / f"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{node.version}"


def test_it_has_every_function_that_is_called_but_those_that_came_later(
    node: nvidia_roots.Node,
) -> None:
    handle = ctypes.CDLL(str(library(node)))
    assert {name for name in called() if not hasattr(handle, name)} == LATER[node.version]


def test_without_a_driver_it_says_that_none_is_loaded(node: nvidia_roots.Node) -> None:
    code = f"import ctypes; print(ctypes.CDLL({str(library(node))!r}).nvmlInitWithFlags(0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{NO_DRIVER}\n"
