import pytest

from driver import ids
from driver.devices import mig as partition
from driver.kubeletplugin.plan import mig, steps
from simulator import machine
from tests.fakes import nvml

GPU = ids.GpuUuid("GPU-1")
ON = steps.Step(mig.ON, mig.OFF_AGAIN, GPU)
MAKE = steps.Step(mig.MAKE, mig.DESTROY, GPU, {"profile": 9, "start": 4, "size": 4})
PLACE = partition.InstanceRef(GPU, 9, partition.Placement(4, 4))
UUID = ids.MigUuid("MIG-1")
MADE = partition.Instance(2, 9, PLACE.placement, 0, UUID)


def test_a_created_instance_is_destroyed_by_placement_and_uuid() -> None:
    undo = MAKE.inverse(mig.instance_facts(MADE))
    assert (undo.act, mig.step_instance(undo)) == (
        mig.DESTROY,
        partition.InstanceRef(GPU, 9, PLACE.placement, UUID),
    )


def test_the_created_instance_is_known_from_all_facts_of_a_step() -> None:
    undo = MAKE.inverse(mig.instance_facts(MADE))
    assert mig.created_instance(undo) == MADE
    assert mig.created_instance(MAKE.inverse()) is None


@pytest.mark.parametrize(("product", "outlives"), [("hgx-h100", False), ("dgx-a100", True)])
def test_a_mode_outlives_the_boot_where_its_change_takes_a_reset(
    product: str, *, outlives: bool
) -> None:
    gpu = nvml.FakeNvml(machine.build(product, seed="node-1")).inventory().gpus[0]
    step = mig.mode_step(mig.ON, mig.OFF_AGAIN, gpu)
    assert mig.outlives_boot((step, MAKE)) is outlives
    assert not mig.outlives_boot((MAKE,))


def test_a_possibly_created_instance_is_destroyed_by_placement() -> None:
    assert mig.step_instance(MAKE.inverse()) == PLACE
    assert not MAKE.inverse().rebooted
    assert MAKE.inverse(rebooted=True).rebooted


def test_the_places_of_a_claim_are_its_instances_as_far_as_they_are_known() -> None:
    other = steps.Step(mig.MAKE, mig.DESTROY, GPU, {"profile": 9, "start": 0, "size": 4})
    planned = (ON, MAKE, ON, other)
    first, second = mig.planned_instances(planned, ({}, mig.instance_facts(MADE), {}))
    assert (first.uuid, second.uuid) == (UUID, None)
    assert (first.placement.start, second.placement.start) == (4, 0)
    assert list(mig.planned_instances((ON,), ())) == []


def test_only_claims_that_turn_mig_on_have_it_on_for_them() -> None:
    assert list(mig.enabled_gpus((MAKE, ON))) == [GPU]
    off = steps.Step(mig.OFF, mig.ON_AGAIN, GPU)
    assert list(mig.enabled_gpus((MAKE, off))) == []
