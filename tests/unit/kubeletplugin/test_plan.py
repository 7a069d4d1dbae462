from driver import ids
from driver.api import v1alpha1
from driver.kubeletplugin import plan, steps
from tests import builders

KIND = "gpu.ration.dev/claim"
GPU = ids.GpuUuid("GPU-1")


def a_grant(device: str = "gpu-0", gpu: str = "GPU-1", *, admin: bool = False) -> steps.Grant:
    name = ids.DeviceName(device)
    return steps.Grant("gpu", "node-1", name, ids.GpuUuid(gpu), admin_access=admin)


def planned(*grants: steps.Grant) -> plan.Plan:
    return plan.make_plan(builders.UID, KIND, [(one, v1alpha1.GpuConfig()) for one in grants])


def test_a_whole_gpu_needs_no_step() -> None:
    made = planned(a_grant())
    (device,) = made.devices
    assert made.steps == ()
    assert device.edits == steps.Edits((GPU,))
    assert device.cdi_id == f"{KIND}={builders.UID}-gpu-0"
    assert device.cdi_name == f"{builders.UID}-gpu-0"


def test_gpus_are_named_once_in_the_order_of_locking() -> None:
    made = planned(a_grant("b", "GPU-2"), a_grant("a", "GPU-1"), a_grant("c", "GPU-2"))
    assert made.gpus == ("GPU-1", "GPU-2")


def test_a_step_and_its_inverse_take_each_other_back() -> None:
    step = steps.Step("set", "clear", GPU, {"mode": 3})
    assert step.inverse() == steps.Step("clear", "set", GPU, {"mode": 3})
    assert step.inverse().inverse() == step


def test_overlap_counts_gpus_and_not_names() -> None:
    held = planned(a_grant("another-name")).devices
    found = plan.overlap(planned(a_grant()), "me", [("them", held)])
    assert found == plan.Overlap(GPU, "them")
    assert plan.overlap(planned(a_grant(gpu="GPU-2")), "me", [("them", held)]) is None


def test_admin_access_neither_holds_nor_is_held_off() -> None:
    admin = planned(a_grant(admin=True))
    assert plan.overlap(planned(a_grant()), "me", [("them", admin.devices)]) is None
    assert plan.overlap(admin, "me", [("them", planned(a_grant()).devices)]) is None
