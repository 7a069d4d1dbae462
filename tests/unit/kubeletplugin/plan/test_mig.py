from driver import ids
from driver.devices import mig as partition
from driver.kubeletplugin.plan import mig, steps

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
