from driver.controller.nodes import condition
from driver.resources.dra import slices
from tests.support.builders import objects

NAME = "gpu-0000-18-00-0"
OTHER = "gpu-0000-2a-00-0"


def a_slice(**taints: str) -> slices.Slice:
    """Two GPUs with two faces each; `taints` are by device name, `-` written `_`."""
    result = {name.replace("_", "-"): value for name, value in taints.items()}
    devices = []
    for name in (NAME, f"{NAME}-ts", OTHER, f"{OTHER}-ts"):
        more = (
            [{"key": result[name], "value": "79", "effect": "NoSchedule"}] if name in result else []
        )
        devices.append(objects.a_device(name, taints=[objects.ALLOCATOR_TAINT, *more]))
    return slices.parse(objects.a_slice("node-a", devices))


def test_gpus_that_anyone_may_have_are_healthy() -> None:
    gpu_condition = condition.gpu_condition([a_slice()])
    assert gpu_condition is not None
    assert (gpu_condition.status, gpu_condition.reason, gpu_condition.message) == (
        "True",
        "GPUsHealthy",
        "2 GPUs are healthy",
    )


def test_a_cordoned_gpu_is_as_healthy_as_before() -> None:
    gpu_condition = condition.gpu_condition([a_slice(gpu_0000_18_00_0="ration.dev/cordoned")])
    assert gpu_condition is not None
    assert gpu_condition.status == "True"


def test_a_tainted_face_makes_its_gpu_unhealthy_and_says_by_what() -> None:
    gpu_condition = condition.gpu_condition([a_slice(gpu_0000_18_00_0_ts="ration.dev/xid")])
    assert gpu_condition is not None
    assert (gpu_condition.status, gpu_condition.reason) == ("False", "GPUsUnhealthy")
    assert gpu_condition.message == f"1 of 2 GPUs are not healthy: {NAME}: ration.dev/xid=79"


def test_a_taint_without_effect_is_no_ill_health() -> None:
    remark = {"key": "ration.dev/unmonitored", "effect": "None"}
    device = objects.a_device(NAME, taints=[remark])
    gpu_condition = condition.gpu_condition([slices.parse(objects.a_slice("node-a", [device]))])
    assert gpu_condition is not None
    assert gpu_condition.status == "True"


def test_a_node_without_gpus_has_nothing_to_say() -> None:
    assert condition.gpu_condition([]) is None
