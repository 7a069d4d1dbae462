"""Tests of the users of a GPU: the real adapter on a simulated machine, and the fake."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml.queries import processes as gpu_processes
from simulator import codes, control, machine, state, wire
from tests.fakes import gpu_programs, simulated_node
from tests.fakes import nvml as fake_nvml
from tests.fakes import users as fake_users

MIB = 1 << 20
WHOLE = str(codes.WHOLE_GPU)


@dataclass
class World:
    """Two GPUs' users, faults, and a way to have an MPS client on the first: its pid."""

    users: ports.ProcessLister
    gpus: tuple[ids.GpuUuid, ids.GpuUuid]
    fault: Callable[..., object]
    client: Callable[[int], int]

    def process(self, pid: int, mib: int) -> None:
        self.fault("process", self.gpus[0], str(pid), str(mib * MIB), WHOLE, WHOLE)

    def seen(self) -> dict[int, int | None]:
        return {
            process.pid: process.used_bytes for process in self.users.list_processes(self.gpus[0])
        }


def fake() -> World:
    built = machine.build("hgx-h100", "contract")
    commands, answer = control.Control(built), fake_nvml.FakeNvml(built).library

    def client(mib: int) -> int:
        built.board(built.gpus[0]).processes.append(state.Process(99, mib * MIB, mps=True))
        return 99

    first, second = (ids.GpuUuid(gpu.uuid) for gpu in built.gpus[:2])
    return World(
        fake_users.FakeUsers(answer),
        (first, second),
        lambda call, *words: wire.invoke(getattr(commands, call), words),
        client,
    )


def simulated(base: Path) -> Iterator[World]:
    with simulated_node.running(base, "hgx-h100") as node:
        on_it = gpu_programs.Gpu(base, 0)

        def client(mib: int) -> int:
            on_it.daemon()
            _, answer = on_it.start("--allocate", f"{mib}Mi")
            return int(answer["pid"])

        first, second = (gpu.uuid for gpu in node.gpus()[:2])
        yield World(
            gpu_processes.NvmlProcesses(node.library.session), (first, second), node.fault, client
        )
        node.fault("restore", first)
        on_it.close()


@pytest.fixture(params=["fake", "simulated"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Yield a world below a short path, as sockets need."""
    if request.param == "fake":
        yield fake()
        return
    with tempfile.TemporaryDirectory(prefix="users-") as temporary_directory:
        yield from simulated(Path(temporary_directory) / "m")


def test_processes_are_told_by_pid_with_the_bytes_they_use(world: World) -> None:
    assert world.seen() == {}
    world.process(4712, 100)
    world.process(4711, 300)
    assert world.users.list_processes(world.gpus[0]) == (
        ports.GpuProcess(4711, 300 * MIB),
        ports.GpuProcess(4712, 100 * MIB),
    )
    assert world.users.list_processes(world.gpus[1]) == ()


def test_a_client_of_mps_is_told_once_with_what_it_uses_itself(world: World) -> None:
    world.process(4711, 300)
    pid = world.client(200)
    seen = world.seen()
    assert (seen[pid], seen[4711]) == (200 * MIB, 300 * MIB)
    # The server of the daemon is there as well, and uses nothing of its own.
    assert sum(size or 0 for size in seen.values()) == 500 * MIB


def test_values_a_gpu_does_not_report_are_none(world: World) -> None:
    world.process(4711, 300)
    world.fault("veil", world.gpus[0], "1")
    assert world.seen() == {4711: None}
    world.fault("veil", world.gpus[0], "0")
    assert world.seen() == {4711: 300 * MIB}


def test_a_lost_gpu_is_a_fault_and_the_others_go_on(world: World) -> None:
    world.fault("lose", world.gpus[0])
    with pytest.raises(errors.DeviceFault):
        world.seen()
    assert world.users.list_processes(world.gpus[1]) == ()
