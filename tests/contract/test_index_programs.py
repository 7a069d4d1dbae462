"""Programs of the package index that read NVML in ways of their own, on every simulated machine.

They have an environment of their own (`make index-programs`), and are skipped without it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster import shell
from simulator import layout, machine, profile
from simulator import store as machines
from tests.contract import worlds

PYTHON = Path(__file__).parents[2] / ".venv-programs/bin/python"
MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="not installed: make index-programs brings them"
)

GPUTIL = """
import GPUtil
for gpu in GPUtil.getGPUs():
    print(gpu.id, gpu.uuid, int(gpu.memoryTotal), gpu.name, sep="|")
"""
NVSMI = """
import nvsmi
for gpu in nvsmi.get_gpus():
    print(gpu.id, gpu.uuid, int(gpu.mem_total), gpu.name, sep="|")
"""
PY3NVML = """
from py3nvml import py3nvml as nvml
nvml.nvmlInit()
for index in range(nvml.nvmlDeviceGetCount()):
    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    mib = nvml.nvmlDeviceGetMemoryInfo(gpu).total >> 20
    print(index, nvml.nvmlDeviceGetUUID(gpu), mib, nvml.nvmlDeviceGetName(gpu), sep="|")
"""
EVERY_GETTER = """
from py3nvml import py3nvml as nvml
nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
for name in sorted(name for name in dir(nvml) if name.startswith("nvmlDeviceGet")):
    try:
        getattr(nvml, name)(gpu)
    except nvml.NVMLError as error:
        print(name, error.value)
    except TypeError:
        continue  # it takes more than a GPU
"""
FUNCTION_NOT_FOUND, UNKNOWN = "13", "999"


@pytest.fixture(params=profile.names(), scope="module")
def base(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("machine")
    with worlds.running(path, str(request.param)):
        yield path


def run(base: Path, program: str) -> list[str]:
    """The lines that a program prints where the machine's driver is installed."""
    position = layout.Layout(base)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(position.libraries),
        "PATH": f"{position.driver_root / 'usr/bin'}:{os.environ['PATH']}",
    }
    return shell.run((str(PYTHON), "-W", "ignore", "-c", program), env=environment).splitlines()


def row(index: int, gpu: machine.Gpu) -> str:
    return f"{index}|{gpu.uuid}|{gpu.product.memory_mib.total}|{gpu.product.name}"


@pytest.mark.parametrize("program", [GPUTIL, NVSMI, PY3NVML], ids=["GPUtil", "nvsmi", "py3nvml"])
def test_every_gpu_is_listed_as_it_is(base: Path, program: str) -> None:
    gpus = [gpu for gpu in machines.load(base).gpus if not gpu.slot.excluded]
    assert run(base, program) == [row(index, gpu) for index, gpu in enumerate(gpus)]


def test_every_getter_of_py3nvml_finds_its_function(base: Path) -> None:
    """It has 57 that take a GPU alone; what a GPU lacks is NOT_SUPPORTED."""
    refused = dict(line.split() for line in run(base, EVERY_GETTER))
    assert not set(refused.values()) & {FUNCTION_NOT_FOUND, UNKNOWN}, refused
