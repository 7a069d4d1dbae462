"""Events and polls by unmodified pynvml, on the simulated library."""

import os
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from driver import errors, ids
from driver.devices.health import Instance, PollResult, XidEvent
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import health as nvml_health
from simulator import control, machine, node, profile
from tests.contract import worlds
from tests.fakes import health as fakes

WHOLE = str(0xFFFFFFFF)
GPUS = [ids.GpuUuid(gpu.uuid) for gpu in machine.build("hgx-h100", seed="contract").gpus]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    with worlds.running(tmp_path, "hgx-h100") as path:
        yield path


@pytest.fixture
def base(library: Path, tmp_path: Path) -> Path:
    assert library.exists()
    return tmp_path


@pytest.fixture
def watcher(library: Path) -> Iterator[nvml_health.NvmlHealth]:
    with fakes.simulated(library) as counted:
        yield counted
        counted.close()


def xid(base: Path, number: int, gpu: int, gi: str = WHOLE, ci: str = WHOLE) -> None:
    control.send(base, "xid", GPUS[gpu], str(number), gi, ci)


def test_every_gpu_is_watched_and_an_xid_names_its_own(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    assert not watcher.watching
    assert list(watcher.readable_gpus()) == GPUS
    watched = watcher.watch(GPUS)
    assert sorted(watched.gpu for watched in watched) == sorted(GPUS)
    assert {watched.problem for watched in watched} == {""}
    assert watcher.watching
    assert watcher.wait(0.01) is None
    xid(base, 48, 3)
    xid(base, 13, 5)
    assert watcher.wait(5) == XidEvent(GPUS[3], 48)
    assert watcher.wait(5) == XidEvent(GPUS[5], 13)
    assert watcher.watch(GPUS) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="MIG is root's")
def test_an_xid_of_an_instance_names_the_instance(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    watcher.watch(watcher.readable_gpus())
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceSetMigMode(handle, 1) == pynvml.NVML_SUCCESS
    gpu_instance = pynvml.nvmlDeviceCreateGpuInstance(handle, 19)
    info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(gpu_instance, 0, 0)
    pynvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, info.id)
    gi = int(pynvml.nvmlGpuInstanceGetInfo(gpu_instance).id)
    while event := watcher.wait(0.2):
        assert event == ports.MigChanged(GPUS[0])
    xid(base, 48, 0, gi=str(gi))
    xid(base, 48, 0, gi=str(gi), ci="0")
    assert watcher.wait(5) == XidEvent(GPUS[0], 48, Instance(gi))
    assert watcher.wait(5) == XidEvent(GPUS[0], 48, Instance(gi, 0))


def test_other_events_are_reasons_to_look(watcher: nvml_health.NvmlHealth, base: Path) -> None:
    watcher.watch(watcher.readable_gpus())
    control.send(base, "ecc", GPUS[2], "0", "1")
    assert watcher.wait(5) == ports.GpuChanged(GPUS[2])
    control.send(base, "ecc", GPUS[2], "1", "0")
    assert watcher.wait(0.05) is None


def test_a_poll_reads_what_a_gpu_says_of_itself(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    previous = watcher.probe(GPUS[0])
    assert previous == PollResult(recovery=0, energy_mj=previous.energy_mj)
    control.send(base, "remap", GPUS[0], "1", "0")
    control.send(base, "remap", GPUS[0], "0", "1")
    control.send(base, "recovery", GPUS[0], "GPU_RESET")
    control.send(base, "sram", GPUS[0], "0", "1", "1")
    after = watcher.probe(GPUS[0])
    assert after.repair_pending
    assert after.repair_failed
    assert after.sram_exceeded
    assert after.recovery == 1
    assert previous.energy_mj is not None
    assert after.energy_mj is not None
    assert after.energy_mj >= previous.energy_mj
    assert watcher.probe(GPUS[1]).recovery == 0
    control.send(base, "restore", GPUS[0])
    reset = watcher.probe(GPUS[0])
    assert reset.energy_mj is not None
    assert reset.energy_mj < previous.energy_mj


def test_memory_that_cannot_be_repaired_is_read(library: Path, base: Path) -> None:
    control.send(base, "upgrade", "590.48.01")
    control.send(base, "reboot")
    control.send(base, "repair", "2", "memory")
    with fakes.simulated(library) as watcher:
        signs = [watcher.probe(gpu) for gpu in watcher.readable_gpus()]
        watcher.close()
    assert [index for index, sign in enumerate(signs) if sign.unrepairable] == [2]


def test_a_lost_gpu_is_left_out_until_it_is_back(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    watcher.watch(watcher.readable_gpus())
    control.send(base, "lose", GPUS[4])
    for _ in range(2):
        with pytest.raises(errors.DeviceFault) as lost:
            watcher.wait(5)
        assert lost.value.code == pynvml.NVML_ERROR_GPU_IS_LOST
    rest = [gpu for gpu in GPUS if gpu != GPUS[4]]
    assert list(watcher.readable_gpus()) == rest
    assert "error 15" in watcher.probe(GPUS[4]).problem
    assert not watcher.probe(GPUS[3]).problem
    watcher.watch(rest)
    xid(base, 31, 6)
    assert watcher.wait(5) == XidEvent(GPUS[6], 31)
    assert watcher.wait(0.01) is None
    control.send(base, "restore", GPUS[4])
    assert not watcher.probe(GPUS[4]).problem
    (back,) = watcher.watch(watcher.readable_gpus())
    assert (back.gpu, back.problem) == (GPUS[4], "")
    xid(base, 31, 4)
    assert watcher.wait(5) == XidEvent(GPUS[4], 31)


def test_no_event_is_lost_while_a_lost_gpu_is_left_out(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    watcher.watch(watcher.readable_gpus())
    control.send(base, "lose", GPUS[4])
    xid(base, 79, 4)
    xid(base, 74, 5)
    watcher.watch([gpu for gpu in GPUS if gpu != GPUS[4]])
    assert [watcher.wait(1), watcher.wait(1)] == [XidEvent(GPUS[4], 79), XidEvent(GPUS[5], 74)]
    assert watcher.wait(0.01) is None


def test_a_lost_gpu_is_not_watched_and_the_others_are(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    control.send(base, "lose", GPUS[1])
    problems = {watched.gpu: watched.problem for watched in watcher.watch(GPUS)}
    assert "error 15" in problems.pop(GPUS[1])
    assert set(problems.values()) == {""}


def test_a_gpu_that_left_the_bus_cannot_be_reached(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    assert len(watcher.readable_gpus()) == 8
    control.send(base, "remove", GPUS[7])
    assert len(watcher.readable_gpus()) == 7
    assert watcher.probe(GPUS[7]).problem


def test_an_event_set_that_the_driver_forgot_is_made_anew(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    watcher.watch(watcher.readable_gpus())
    control.send(base, "reboot")
    assert len(watcher.watch(watcher.readable_gpus())) == 0
    with pytest.raises(errors.DeviceFault) as forgotten:
        watcher.wait(1)
    assert forgotten.value.code == pynvml.NVML_ERROR_UNKNOWN
    watcher.close()
    assert not watcher.watching
    assert len(watcher.watch(watcher.readable_gpus())) == 8
    xid(base, 13, 0)
    assert watcher.wait(5) == XidEvent(GPUS[0], 13)


def test_a_gpu_that_joins_a_forgotten_set_is_not_to_blame(
    watcher: nvml_health.NvmlHealth, base: Path
) -> None:
    watcher.watch(GPUS[:7])
    control.send(base, "reboot")
    assert {watched.problem for watched in watcher.watch(GPUS)} == {""}
    xid(base, 13, 0)
    assert watcher.wait(5) == XidEvent(GPUS[0], 13)


def test_without_the_driver_everything_is_a_fault_of_the_library(tmp_path: Path) -> None:
    with worlds.running(tmp_path, "hgx-h100") as library, fakes.simulated(library) as watcher:
        watcher.watch(watcher.readable_gpus())
        library_of = library
    again = node.Node(tmp_path)
    with fakes.simulated(library_of) as watcher:
        for call in (
            watcher.readable_gpus,
            lambda: watcher.probe(GPUS[0]),
            lambda: watcher.watch(GPUS),
        ):
            with pytest.raises(errors.DeviceFault) as absent:
                call()
            assert absent.value.code == pynvml.NVML_ERROR_DRIVER_NOT_LOADED
        again.start()
        assert len(watcher.watch(watcher.readable_gpus())) == 8
        again.stop()
        with pytest.raises(errors.DeviceFault):
            watcher.wait(0.1)
        assert not watcher.watching


def test_an_older_driver_has_no_recovery_action_and_an_older_gpu_retires_pages(
    tmp_path: Path,
) -> None:
    with worlds.running(tmp_path, "t4") as library, fakes.simulated(library) as watcher:
        (gpu, *_) = watcher.readable_gpus()
        signs = watcher.probe(gpu)
        assert signs == PollResult(recovery=None, energy_mj=signs.energy_mj)
        assert {watched.problem for watched in watcher.watch([gpu])} == {""}


@pytest.mark.parametrize("name", profile.names())
def test_the_gpus_of_every_machine_are_watched_and_well(tmp_path: Path, name: str) -> None:
    with worlds.running(tmp_path, name) as library, fakes.simulated(library) as watcher:
        gpu_uuids = watcher.readable_gpus()
        assert len(gpu_uuids) == len(profile.load(name).gpus)
        assert {watched.problem for watched in watcher.watch(gpu_uuids)} == {""}
        signs = [watcher.probe(gpu) for gpu in gpu_uuids]
        assert [sign for sign in signs if sign.problem or sign.repair_pending] == []
        assert {sign.recovery for sign in signs} <= {None, 0}
