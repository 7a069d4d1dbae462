import pytest

from driver import ids
from driver.api import v1alpha1
from driver.devices import faces, mig
from driver.kubeletplugin.plan import planner, steps
from tests.support.builders import allocated_claims
from tests.support.builders.mig_grants import EIGHTH, GPU, HALF, a_gpu, a_part

KIND = "gpu.ration.dev/claim"
NAME = "gpu-0000-18-00-0"


def a_grant(gpu: str = "GPU-1", *, admin: bool = False, enabled: bool = False) -> steps.Grant:
    face = faces.WholeFace(a_gpu(gpu, enabled=enabled))
    return steps.Grant("gpu", "node-1", face, admin_access=admin)


def planned(*grants: steps.Grant, on_for_us: frozenset[ids.GpuUuid] = frozenset()) -> planner.Plan:
    request = [(grant, v1alpha1.GpuConfig()) for grant in grants]
    return planner.make_plan(allocated_claims.UID, KIND, request, on_for_us)


def test_a_whole_gpu_needs_no_step() -> None:
    plan = planned(a_grant())
    (device,) = plan.devices
    assert plan.steps == ()
    assert device.edits == steps.Edits((GPU,))
    assert device.cdi_id == f"{KIND}={allocated_claims.UID}-{NAME}"
    assert device.cdi_name == f"{allocated_claims.UID}-{NAME}"


def test_gpus_are_named_once_in_the_order_of_locking() -> None:
    plan = planned(a_grant("GPU-2"), a_grant("GPU-1"), a_grant("GPU-2"))
    assert plan.gpus == ("GPU-1", "GPU-2")


def test_a_step_and_its_inverse_take_each_other_back() -> None:
    step = steps.Step("set", "clear", GPU, {"mode": 3})
    assert step.inverse() == steps.Step("clear", "set", GPU, {"mode": 3})
    assert step.inverse().inverse() == step


def test_overlap_counts_gpus() -> None:
    held = planned(a_grant()).devices
    overlap = planner.find_overlap(planned(a_grant()), "me", [("them", held)])
    assert overlap == planner.Overlap(GPU, ("them",))
    assert planner.find_overlap(planned(a_grant(gpu="GPU-2")), "me", [("them", held)]) is None


def test_admin_access_neither_holds_nor_is_held_off() -> None:
    admin = planned(a_grant(admin=True))
    assert planner.find_overlap(planned(a_grant()), "me", [("them", admin.devices)]) is None
    assert planner.find_overlap(admin, "me", [("them", planned(a_grant()).devices)]) is None


def test_a_mig_device_enables_mig_and_is_created_at_its_placement() -> None:
    plan = planned(a_part(HALF, 4))
    on, built = plan.steps
    assert (on.act, on.undo, on.arguments) == ("mig-on", "mig-off-again", {"resetless": 1})
    assert (built.act, built.undo) == ("mig-make", "mig-destroy")
    assert built.arguments == {"profile": 9, "start": 4, "size": 4}
    (device,) = plan.devices
    assert device.device == f"{NAME}-mig-3g40gb-4"
    assert device.edits.instance == mig.InstanceRef(GPU, 9, mig.Placement(4, 4))


def test_mig_enabled_by_others_stays_on_and_our_last_claim_disables_ours() -> None:
    foreign = planned(a_part(EIGHTH, 0, enabled=True))
    assert [step.act for step in foreign.steps] == ["mig-make"]
    shared = planned(a_part(EIGHTH, 0, enabled=True), on_for_us=frozenset({GPU}))
    assert [step.act for step in shared.steps] == ["mig-on", "mig-make"]


def test_an_instance_that_somebody_else_made_is_taken_as_it_is() -> None:
    gpu = a_gpu(enabled=True)
    instance = mig.Instance(2, 9, mig.Placement(4, 4), 0, ids.MigUuid("MIG-1"))
    face = faces.MigFace(gpu, HALF, mig.Placement(4, 4), instance)
    plan = planned(steps.Grant("gpu", "node-1", face))
    assert plan.steps == ()
    assert plan.devices[0].edits.instance == mig.InstanceRef(
        GPU, 9, mig.Placement(4, 4), instance.uuid
    )


def test_a_whole_gpu_ends_mig_for_as_long_as_it_is_held() -> None:
    (step,) = planned(a_grant(enabled=True)).steps
    assert (step.act, step.undo) == ("mig-off", "mig-on-again")
    assert planned(a_grant(enabled=True, admin=True)).steps == ()


@pytest.mark.parametrize(
    ("grant", "other", "meet"),
    [
        (a_part(HALF, 0), a_part(HALF, 4), False),
        (a_part(EIGHTH, 3), a_part(HALF, 4), False),
        (a_part(EIGHTH, 4), a_part(HALF, 4), True),
        (a_part(EIGHTH, 4), a_part(EIGHTH, 4), True),
        (a_part(EIGHTH, 4), a_part(EIGHTH, 4, "GPU-2"), False),
        (a_grant(), a_part(EIGHTH, 4), True),
        (a_grant("GPU-2"), a_part(EIGHTH, 4), False),
    ],
)
def test_parts_meet_by_memory_slices_and_the_whole_meets_every_part(
    grant: steps.Grant, other: steps.Grant, *, meet: bool
) -> None:
    for first, second in ((grant, other), (other, grant)):
        overlap = planner.find_overlap(planned(first), "me", [("them", planned(second).devices)])
        assert (overlap is not None) is meet
        within = planner.find_overlap(planned(first, second), "me", [])
        assert (within is not None) is meet


def test_an_overlap_of_parts_names_the_slices() -> None:
    overlap = planner.find_overlap(
        planned(a_part(HALF, 4)), "me", [("them", planned(a_grant()).devices)]
    )
    assert str(overlap) == "a part of memory slices 4 to 7 of GPU-1"
