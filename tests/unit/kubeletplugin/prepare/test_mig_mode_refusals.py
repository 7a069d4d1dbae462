"""Tests of which devices a MIG mode that stays keeps back, and for how long."""

from dataclasses import replace

from driver import names
from driver.devices import faces, model
from driver.kubeletplugin.prepare import mig_mode_refusals
from driver.resources.dra import slices
from simulator import machine
from tests.fakes import clock as fake_clock
from tests.fakes import nvml

INVENTORY = nvml.FakeNvml(machine.build("hgx-h100", "node-a")).inventory()
GPU = INVENTORY.all_gpus[0]
NAME = faces.device_name(GPU.pci)
FIRST_S = mig_mode_refusals.PACE.base_s


def refusing(value: str) -> tuple[mig_mode_refusals.ModeRefusals, fake_clock.FakeClock]:
    time = fake_clock.FakeClock()
    mode_refusals = mig_mode_refusals.ModeRefusals(time)
    mode_refusals.add(GPU.uuid, value)
    return mode_refusals, time


def with_mig_on() -> model.Inventory:
    assert GPU.mig is not None
    return replace(INVENTORY, gpus=(replace(GPU, mig=replace(GPU.mig, enabled=True)),))


def test_a_mode_that_stays_off_keeps_back_the_parts_of_that_gpu_alone() -> None:
    mode_refusals, _ = refusing(mig_mode_refusals.OFF)
    kept_back = mode_refusals.taints(INVENTORY)
    assert set(kept_back.values()) == {
        (slices.Taint(names.MIG_MODE_TAINT, "stays-off", "NoSchedule"),)
    }
    assert kept_back.keys() == {
        face.name for face in faces.all_faces(GPU) if isinstance(face, faces.MigFace)
    }


def test_mig_that_stays_enabled_withholds_the_gpu_and_shares_but_not_the_monitor() -> None:
    mode_refusals, _ = refusing(mig_mode_refusals.ON)
    assert mode_refusals.taints(with_mig_on()).keys() == {NAME, f"{NAME}-mps", f"{NAME}-ts"}


def test_a_mode_that_is_the_other_by_now_keeps_nothing_back() -> None:
    mode_refusals, _ = refusing(mig_mode_refusals.OFF)
    assert mode_refusals.taints(with_mig_on()) == {}
    mode_refusals, _ = refusing(mig_mode_refusals.ON)
    assert mode_refusals.taints(INVENTORY) == {}


def test_it_is_tried_again_after_a_while_that_doubles_with_each_refusal() -> None:
    mode_refusals, time = refusing(mig_mode_refusals.OFF)
    time.advance(FIRST_S - 1)
    assert mode_refusals.taints(INVENTORY)
    time.advance(1)
    assert mode_refusals.taints(INVENTORY) == {}
    mode_refusals.add(GPU.uuid, mig_mode_refusals.OFF)
    time.advance(2 * FIRST_S - 1)
    assert mode_refusals.taints(INVENTORY)
    time.advance(1)
    assert mode_refusals.taints(INVENTORY) == {}


def test_a_change_that_worked_ends_it_and_both_are_told() -> None:
    changes: list[int] = []
    mode_refusals = mig_mode_refusals.ModeRefusals(fake_clock.FakeClock())
    mode_refusals.subscribe(lambda: changes.append(len(mode_refusals.taints(INVENTORY))))
    mode_refusals.clear(GPU.uuid)
    mode_refusals.add(GPU.uuid, mig_mode_refusals.OFF)
    mode_refusals.clear(GPU.uuid)
    assert changes[0] > 0
    assert changes[1:] == [0]
