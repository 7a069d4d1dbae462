"""One suite for the fake, the simulated library and hardware (`gpu`), which it only reads."""

import os
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from simulator import control, library, machine, wire
from tests.contract import worlds as machines
from tests.contract.nvml.speaker import Speaker
from tests.contract.nvml.worlds import World

MACHINE = "hgx-h100"
FOLDERS = (
    *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)


def no_fault(*_: str) -> None:
    raise AssertionError("hardware is only read")


def fake() -> World:
    built = machine.build(MACHINE, "contract")
    nvml = library.Library(built)
    nvml.init()
    commands = control.Control(built)
    return World(nvml, lambda call, *words: wire.invoke(getattr(commands, call), words))


def hardware() -> Path:
    """The installed library, by path: its name alone would find the simulated one once loaded."""
    for folder in filter(None, FOLDERS):
        path = Path(folder) / "libnvidia-ml.so.1"
        if path.is_file():
            return path
    pytest.skip("no real NVIDIA GPU here: libnvidia-ml.so.1 is not installed")


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[World]:
    with machines.running(tmp_path, MACHINE) as path, machines.initialised(path):
        yield World(Speaker(), lambda call, *words: control.send(tmp_path, call, *words))


@pytest.fixture(params=["fake", "simulated"])
def changeable(request: pytest.FixtureRequest) -> World:
    """A world of its own, for tests that change it."""
    if request.param == "fake":
        return fake()
    if os.geteuid() != 0:
        pytest.skip("MIG is root's")
    simulated_value: World = request.getfixturevalue("simulated")
    return simulated_value


@pytest.fixture(params=["fake", "simulated", pytest.param("hardware", marks=pytest.mark.gpu)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Any world, for tests that only read."""
    if request.param == "fake":
        yield fake()
    elif request.param == "simulated":
        yield request.getfixturevalue("simulated")
    else:
        with machines.loaded(hardware()):
            try:
                pynvml.nvmlInit()
            except pynvml.NVMLError as e:
                pytest.skip(f"no real NVIDIA GPU here: nvmlInit answered {e.value}")
            yield World(Speaker(), no_fault)
            pynvml.nvmlShutdown()
