"""One suite for NVIDIA's own control daemon of each driver version, and for the simulated one."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.runtime.files import driver_search
from simulator import layout, store
from tests.contract.mps.daemons import Daemons
from tests.fakes import mpsnode, nvidia_roots

SIMULATED = "simulated"
VERSIONS = ("535.261.03", "550.163.01")
"""Of the drivers whose words are known."""


@pytest.fixture(scope="session")
def machine() -> Iterator[Path]:
    with mpsnode.machine() as base:
        yield base


@pytest.fixture(scope="session")
def real_host(tmp_path_factory: pytest.TempPathFactory) -> "Hosts":
    if os.geteuid() != 0:
        pytest.skip("needs root to enter the driver's file system")
    return Hosts(tmp_path_factory)


class Hosts:
    """Nodes with a driver of each system, laid out when they are first asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._made: dict[str, nvidia_roots.Node] = {}

    def node(self, system: str) -> nvidia_roots.Node:
        if system not in self._made:
            folder = self._folders.mktemp(system) / "host"
            self._made[system] = nvidia_roots.lay_node("host", system, folder)
        return self._made[system]


@pytest.fixture
def short() -> Iterator[Path]:
    """Directory whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="mpsd-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


BOTH = [*nvidia_roots.SYSTEMS, SIMULATED]


@pytest.fixture(params=BOTH)
def daemons(real_host: Hosts, short: Path, request: pytest.FixtureRequest) -> Iterator[Daemons]:
    """In a directory of its own, of which a socket's path is short enough."""
    yield from _closing(_made(request, real_host, short))


@pytest.fixture(params=BOTH)
def deep(real_host: Hosts, short: Path, request: pytest.FixtureRequest) -> Iterator[Daemons]:
    """In a directory of which a socket's path is too long."""
    folder = short / ("x" * 90)
    folder.mkdir()
    yield from _closing(_made(request, real_host, folder))


def _made(request: pytest.FixtureRequest, hosts: Hosts, folder: Path) -> Daemons:
    if request.param == SIMULATED:
        base = request.getfixturevalue("machine")
        search = driver_search.build_search(layout.Layout(base).driver_root, Path("/"))
        return Daemons(search, folder, store.load(base).gpus[0].uuid)
    return Daemons(driver_search.build_search("auto", hosts.node(request.param).host), folder)


@pytest.fixture(scope="session")
def simulated() -> Iterator["Machines"]:
    with contextlib.ExitStack() as ends:
        yield Machines(ends)


class Machines:
    """Simulated machines by their driver's version, running from when they are first asked for."""

    def __init__(self, ends: contextlib.ExitStack) -> None:
        self._ends = ends
        self._made: dict[str, Path] = {}

    def of(self, version: str) -> Path:
        if version not in self._made:
            self._made[version] = self._ends.enter_context(mpsnode.machine(version))
        return self._made[version]


@pytest.fixture(params=nvidia_roots.SYSTEMS)
def real(
    real_host: Hosts, short: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Daemons, str]]:
    """NVIDIA's own, and the driver's version."""
    node = real_host.node(request.param)
    for created in _closing(Daemons(driver_search.build_search("auto", node.host), short)):
        yield created, node.version


@pytest.fixture(params=[*nvidia_roots.SYSTEMS, *VERSIONS])
def spoken(
    real_host: Hosts, simulated: Machines, short: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Daemons, str]]:
    """NVIDIA's own and the simulated one, of both versions, and which version."""
    if request.param in VERSIONS:
        base, version = simulated.of(request.param), str(request.param)
        search = driver_search.build_search(layout.Layout(base).driver_root, Path("/"))
        created = Daemons(search, short, store.load(base).gpus[0].uuid)
    else:
        node = real_host.node(request.param)
        created = Daemons(driver_search.build_search("auto", node.host), short)
        version = node.version
    for daemons in _closing(created):
        yield daemons, version


def _closing(created: Daemons) -> Iterator[Daemons]:
    yield created
    created.close()
